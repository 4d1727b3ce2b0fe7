// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
)

// perToken turns prompt lengths into latencies: what prefilling takes, in seconds a token.
const perToken = 0.00012

func azure(t *testing.T, name string) (latencies []float64) {
	f, err := os.Open("../../testdata/traffic/azure/" + name)
	require.NoError(t, err)
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	for _, row := range rows[1:] {
		tokens, err := strconv.ParseFloat(row[1], 64)
		require.NoError(t, err)
		latencies = append(latencies, tokens*perToken)
	}
	return latencies
}

func mooncake(t *testing.T) (latencies []float64) {
	data, err := os.ReadFile("testdata/mooncake_lengths.txt")
	require.NoError(t, err)
	for field := range strings.FieldsSeq(string(data)) {
		tokens, err := strconv.ParseFloat(field, 64)
		require.NoError(t, err)
		latencies = append(latencies, tokens*perToken)
	}
	require.Len(t, latencies, 12_031)
	return latencies
}

type source struct {
	name string
	draw func(*rand.Rand) float64
}

// sources are the distributions that a fitted Gamma was found right and wrong on.
func sources(t *testing.T) []source {
	gamma := func(r *rand.Rand) float64 { // shape 4: the sum of four exponential ones
		return 0.05 * (r.ExpFloat64() + r.ExpFloat64() + r.ExpFloat64() + r.ExpFloat64())
	}
	trace := func(values []float64) func(*rand.Rand) float64 {
		require.NotEmpty(t, values)
		return func(r *rand.Rand) float64 { return values[r.IntN(len(values))] }
	}
	return []source{
		{"Gamma", gamma},
		{"narrow log-normal", func(r *rand.Rand) float64 { return 0.2 * math.Exp(0.4*r.NormFloat64()) }},
		{"log-normal", func(r *rand.Rand) float64 { return 0.2 * math.Exp(0.8*r.NormFloat64()) }},
		{"Weibull", func(r *rand.Rand) float64 { return 0.2 * math.Sqrt(r.ExpFloat64()) }},
		{"70/30 mixture", func(r *rand.Rand) float64 { // prefix hit or miss
			if r.Float64() < 0.7 {
				return 0.05 * math.Exp(0.3*r.NormFloat64())
			}
			return 0.6 * math.Exp(0.3*r.NormFloat64())
		}},
		{"2 % delayed to 3 s", func(r *rand.Rand) float64 {
			if r.Float64() < 0.02 {
				return 3 + 0.02*r.NormFloat64()
			}
			return gamma(r)
		}},
		{"Azure code", trace(azure(t, "code.csv"))},
		{"Azure conv", trace(azure(t, "conv.csv"))},
		{"Mooncake", trace(mooncake(t))},
	}
}

// truth is the quantile of very many values.
func truth(s source, q float64) float64 {
	r := rand.New(rand.NewPCG(6, 0))
	values := make([]float64, 100_000)
	for i := range values {
		values[i] = s.draw(r)
	}
	slices.Sort(values)
	return values[int(q*float64(len(values)))]
}

// Scenario: a P95 that is 10 % beyond what is promised, log-normal, in windows of 250 values, which is fewer than a quantile takes.
// Guarantees: what is told of it, if anything, does not say that the promise is kept, but in one window of 50.
func TestAMissIsNotHiddenByAFit(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 0))
	j := judge(t, Promise{Quantile: 0.95, Objective: 1})
	kept := 0
	for range 1000 {
		var w sketch.Distribution
		for range 250 {
			w.Observe(1.1*math.Exp(0.7*(r.NormFloat64()-1.644854)), 1)
		}
		if got := j.Close(new(Cell), window, &w).Observed; got.Known() && got.Value <= 1 {
			kept++
		}
	}
	t.Logf("%d of 1,000", kept)
	assert.LessOrEqual(t, kept, 20)
}

// Scenario: windows of 59 to 5,000 values of nine distributions, 200 of each. Guarantees: with 300 and more there is
// always an answer, and it is never further than 2 % off the quantile of the very values; nor is the baseline that the next
// window is held against. With fewer, there is one for what is a Gamma distribution, and mostly for nothing else: for no more than
// one window in 25 of any other, but for a Weibull one, which hardly differs. None is further off than 25 %, and where there are
// many they are not biased low by more than 2 %, nor high by more than 7 %, or 13 % for a P99. How often there are any, and how far off, stands in testdata/accuracy.txt.
func TestAQuantileIsRightOrIsNotTold(t *testing.T) {
	const windows = 200
	var table strings.Builder
	fmt.Fprintf(&table, "%d windows a line; error against the quantile of the window's own values, root mean square and most\n\n", windows)
	fmt.Fprintf(&table, "%-20s %-4s %6s %13s %10s %6s %8s %8s\n", "distribution", "", "values", "insufficient", "histogram", "gamma", "rms", "most")
	r := rand.New(rand.NewPCG(5, 0))
	for _, s := range sources(t) {
		for _, q := range []float64{0.95, 0.99} {
			truth := truth(s, q)
			for _, n := range []int{59, 100, 200, 299, 300, 1000, 5000} {
				var by [3]int
				var sum, most, bias float64
				j := judge(t, Promise{Quantile: q, Objective: 1})
				for range windows {
					var w sketch.Distribution
					values := make([]float64, n)
					for i := range values {
						values[i] = s.draw(r)
						w.Observe(values[i], 1)
					}
					c := new(Cell)
					got := j.Close(c, window, &w).Observed
					by[got.Method]++
					if got.Method == Fitted {
						bias += got.Value/truth - 1
					}
					if got.Known() {
						slices.Sort(values)
						at := int(math.Ceil(q*float64(n))) - 1
						off := math.Abs(got.Value/values[at] - 1)
						if n >= 300 { // rounded weights leave the rank a hair on either side
							normal := j.Close(c, 2*window, &w).Dynamic.Value
							assert.True(t, normal >= 0.98*values[at] && normal <= 1.02*values[at+1], "%s, P%v of %d: %v, not %v", s.name, 100*q, n, normal, values[at])
						}
						sum += off * off
						most = max(most, off)
					}
				}
				fmt.Fprintf(&table, "%-20s P%d %7d %13d %10d %6d", s.name, int(100*q), n, by[Insufficient], by[Histogram], by[Fitted])
				if known := windows - by[Insufficient]; known > 0 {
					fmt.Fprintf(&table, " %6.1f %% %6.1f %%", 100*math.Sqrt(sum/float64(known)), 100*most)
				}
				table.WriteByte('\n')
				if n >= 300 {
					assert.Equal(t, windows, by[Histogram])
					assert.LessOrEqual(t, most, 0.02, "%s, P%v of %d", s.name, 100*q, n)
				} else {
					assert.Zero(t, by[Histogram])
				}
				if fitted := by[Fitted]; fitted > windows/25 {
					assert.Contains(t, []string{"Gamma", "Weibull"}, s.name, "P%v of %d: %d answers", 100*q, n, fitted)
					bias /= float64(fitted)
					assert.GreaterOrEqual(t, bias, -0.02, "%s, P%v of %d", s.name, 100*q, n)
					assert.LessOrEqual(t, bias, map[float64]float64{0.95: 0.07, 0.99: 0.13}[q], "%s, P%v of %d", s.name, 100*q, n)
				}
				assert.LessOrEqual(t, most, 0.25, "%s, P%v of %d", s.name, 100*q, n)
				if n < MinimumSamples(q) {
					assert.Equal(t, windows, by[Insufficient])
				}
			}
		}
	}
	golden(t, "testdata/accuracy.txt", table.String())
}

// golden holds got against a file; UPDATE=1 writes it.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}
