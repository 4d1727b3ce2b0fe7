// SPDX-License-Identifier: Apache-2.0

package twosample

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// scipy says what another implementation finds; testdata/reference.py has how it was made.
func scipy(t *testing.T) (r struct {
	MannWhitney []struct {
		Reference, Candidate []float64
		U, P, Ratio          float64
	}
	Fisher, LargeFisher []struct {
		Bad, N, RefBad, RefN uint64
		P                    float64
	}
	Binomial, LargeBinomial []struct {
		Bad, N   uint64
		Share, P float64
	}
	FalseDiscovery []struct {
		P, Adjusted []float64
	}
}) {
	data, err := os.ReadFile("testdata/reference.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &r))
	require.NotEmpty(t, r.MannWhitney)
	require.NotEmpty(t, r.Fisher)
	return r
}

func TestMannWhitneyIsThatOfAnotherImplementation(t *testing.T) {
	for _, want := range scipy(t).MannWhitney {
		bins := Values(nil, want.Reference, want.Candidate)
		u, p := MannWhitney(bins)
		assert.InDelta(t, want.U, u, 1e-9)
		assert.InEpsilon(t, want.P, p, 1e-9)
		// Rounded values have many equal ratios, of which the median is one; here it may lie between two.
		assert.InEpsilon(t, want.Ratio, Ratio(bins), 0.005)
	}
}

func TestFisherIsThatOfAnotherImplementation(t *testing.T) {
	for _, want := range scipy(t).Fisher {
		assert.InEpsilon(t, want.P, Fisher(want.Bad, want.N, want.RefBad, want.RefN), 1e-7, "%+v", want)
	}
	for _, want := range scipy(t).Binomial {
		assert.InEpsilon(t, want.P, Binomial(want.Bad, want.N, want.Share), 1e-9, "%+v", want)
	}
}

// Guarantees: large numbers are no less exact: up to 2^53 of them, which is as far as counts go.
func TestLargeNumbersAreThoseOfAnotherImplementation(t *testing.T) {
	large := scipy(t)
	require.NotEmpty(t, large.LargeFisher)
	require.NotEmpty(t, large.LargeBinomial)
	for _, want := range large.LargeFisher {
		assert.InEpsilon(t, want.P, Fisher(want.Bad, want.N, want.RefBad, want.RefN), 1e-7, "%+v", want)
	}
	for _, want := range large.LargeBinomial {
		assert.InEpsilon(t, want.P, Binomial(want.Bad, want.N, want.Share), 1e-7, "%+v", want)
	}
}

func TestTheCorrectionIsThatOfAnotherImplementation(t *testing.T) {
	for _, want := range scipy(t).FalseDiscovery {
		assert.InDeltaSlice(t, want.Adjusted, BenjaminiHochberg(want.P), 1e-12)
	}
	assert.Empty(t, BenjaminiHochberg(nil))
}
