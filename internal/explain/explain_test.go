// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Scenario: requests from Frankfurt on phones with the new version are slow, one in two; of all others one in a hundred.
// Guarantees: the version, the region and the device are named, in the order in which they single the slow ones out, and
// the tenants, who are all hit alike, are not.
func TestTheGuiltyValueOfEachDimensionIsNamed(t *testing.T) {
	// 10,000 requests: 500 guilty ones with 250 bad; 9,500 others with 95 bad.
	got := Rank(nil, []Dimension{
		{"cloud.region", []Value{{"eu-central-1", 250 + 35, 4000}, {"us-east-1", 40, 4000}, {"ap-south-1", 20, 2000}}},
		{"device.type", []Value{{"phone", 250 + 20, 2500}, {"desktop", 75, 7500}}},
		{"model.version", []Value{{"v1", 90, 9000}, {"v2", 255, 1000}}},
		{"tenant", []Value{{"a", 172, 5000}, {"b", 173, 5000}}},
		{"http.response.status_code", []Value{{"200", 345, 10_000}}},
	}, DefaultOptions())
	require.Len(t, got, 3)
	assert.Equal(t, []string{"v2", "phone", "eu-central-1"}, []string{got[0].Value, got[1].Value, got[2].Value})
	// 255 of 1,000, where the others' 90 of 9,000 let one expect 10: 245 of the 345 are its own.
	assert.InDelta(t, 245.0/345, got[0].Share, 1e-9)
	assert.InDelta(t, (285-4000*60.0/6000)/345, got[2].Share, 1e-9)
	for i, e := range got {
		assert.Less(t, e.P, 1e-20)
		if i > 0 {
			assert.Less(t, e.Surprise, got[i-1].Surprise)
		}
	}
}

func TestWhatIsMerelyFrequentExplainsNothing(t *testing.T) {
	got := Rank(nil, []Dimension{{"region", []Value{{"large", 990, 99_000}, {"small", 10, 1000}}}}, DefaultOptions())
	assert.Empty(t, got)
}

func TestWhatChanceExplainsIsNoExplanation(t *testing.T) {
	got := Rank(nil, []Dimension{{"region", []Value{{"a", 3, 100}, {"b", 1, 100}}}}, DefaultOptions())
	assert.Empty(t, got)
}

func TestWithoutBadEventsThereIsNothingToExplain(t *testing.T) {
	assert.Empty(t, Rank(nil, []Dimension{{"region", []Value{{"a", 0, 100}, {"b", 0, 100}}}, {"empty", nil}}, DefaultOptions()))
	assert.Empty(t, Rank(nil, []Dimension{{"region", []Value{{"a", 100, 100}, {"b", 100, 100}}}}, DefaultOptions()), "all are alike")
}

func TestSurpriseIsTheDivergenceOfTheDistributions(t *testing.T) {
	f := func(want float64, values ...Value) {
		t.Helper()
		var bad, total uint64
		for _, v := range values {
			bad += v.Bad
			total += v.Total
		}
		assert.InDelta(t, want, Dimension{Values: values}.surprise(bad, total), 1e-12)
	}
	f(0, Value{"a", 1, 10}, Value{"b", 2, 20})
	f(1, Value{"a", 10, 10}, Value{"b", 0, 20})
	// By hand: p = (3/4, 1/4), q = (1/4, 3/4), m = (1/2, 1/2): 3/4·log2 3/2 + 1/4·log2 1/2.
	f(0.18872187554086717, Value{"a", 3, 4}, Value{"b", 1, 4})
}

// Guarantees: shares are shares, the order is theirs, and there are no more than asked for.
func TestSharesAreShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var dimensions []Dimension
		for range rapid.IntRange(0, 4).Draw(t, "dimensions") {
			d := Dimension{Name: rapid.StringN(1, 3, -1).Draw(t, "name")}
			for range rapid.IntRange(0, 6).Draw(t, "values") {
				total := rapid.Uint64Range(0, 10_000).Draw(t, "total")
				d.Values = append(d.Values, Value{rapid.StringN(1, 3, -1).Draw(t, "value"), rapid.Uint64Range(0, total).Draw(t, "bad"), total})
			}
			dimensions = append(dimensions, d)
		}
		got := Rank(nil, dimensions, Options{Alpha: 1, Max: 3})
		require.LessOrEqual(t, len(got), 3)
		for i, e := range got {
			require.True(t, e.Share > 0 && e.Share <= 1 && e.Surprise >= 0 && e.Surprise <= 1 && e.P >= 0 && e.P <= 1, "%+v", e)
			if i > 0 {
				require.LessOrEqual(t, e.Share, got[i-1].Share)
			}
		}
	})
}
