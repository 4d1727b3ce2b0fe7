// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/engine"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/yamlkeys"
)

func read(t *testing.T, text string, speed float64) (Fault, error) {
	t.Helper()
	r, o, err := yamlkeys.Parse("f.yaml", []byte(text))
	require.NoError(t, err)
	f := Read(o, speed)
	return f, r.Err()
}

func must(t *testing.T, text string) Fault {
	t.Helper()
	f, err := read(t, text, 30)
	require.NoError(t, err)
	return f
}

func TestLatencyHoldsForItsReplicasAndItsTimeOnly(t *testing.T) {
	s := Schedule{
		must(t, "{kind: latency, match: {version: v2, region: eu}, from: 10s, until: 20s, factor: 4}"),
		must(t, "{kind: latency, match: {version: v2}, from: 15s, factor: 2}"),
	}
	at := func(labels map[string]string, sec int) float64 {
		f := s.For(labels)
		if f == nil {
			return -1
		}
		return f(time.Duration(sec) * time.Second).Slowdown
	}
	eu := map[string]string{"version": "v2", "region": "eu", "tenant": "acme"}
	us := map[string]string{"version": "v2", "region": "us"}
	assert.Equal(t, []float64{0, 4, 8, 2}, []float64{at(eu, 9), at(eu, 10), at(eu, 15), at(eu, 20)}, "two at once multiply")
	assert.Equal(t, []float64{0, 2}, []float64{at(us, 10), at(us, 15)})
	assert.Equal(t, -1.0, at(map[string]string{"version": "v1"}, 15), "nothing ever: no function to call")
}

func TestALeakGrowsUntilItEnds(t *testing.T) {
	s := Schedule{
		must(t, "{kind: leak, match: {version: v2}, from: 10s, until: 20s, rate: 1000}"),
		must(t, "{kind: leak, from: 15s, rate: 10}"),
	}
	at := func(version string, sec int) engine.Conditions {
		return s.For(map[string]string{"version": version})(time.Duration(sec) * time.Second)
	}
	assert.Zero(t, at("v2", 9))
	assert.Equal(t, engine.Conditions{Leaked: 4000}, at("v2", 14))
	assert.Equal(t, engine.Conditions{Leaked: 9040}, at("v2", 19), "two at once add up")
	assert.Equal(t, engine.Conditions{Leaked: 100}, at("v2", 25), "it is given back")
	assert.Equal(t, engine.Conditions{Leaked: 40}, at("v1", 19))
}

func TestWhatIsTakenInBlocksUpToALimit(t *testing.T) {
	f := func(text string, sec float64, want engine.Conditions) {
		t.Helper()
		assert.Equal(t, want, Schedule{must(t, text)}.For(nil)(time.Duration(sec*1e9)))
	}
	f("{kind: leak, rate: 10, block: 100}", 9, engine.Conditions{})
	f("{kind: leak, rate: 10, block: 100}", 25, engine.Conditions{Leaked: 200})
	f("{kind: leak, rate: 10, limit: 150}", 14, engine.Conditions{Leaked: 140})
	f("{kind: leak, rate: 10, limit: 150}", 100, engine.Conditions{Leaked: 150})
	f("{kind: leak, rate: 1, per_request: 7}", 2, engine.Conditions{Leaked: 2, LeaksPerRequest: 7})
}

func TestWallTimesBecomeSimulatedOnes(t *testing.T) {
	f := must(t, "{kind: latency, clock: wall, from: 10s, until: 20s, factor: 4}")
	assert.Equal(t, 300*time.Second, f.From)
	assert.Equal(t, 600*time.Second, f.Until)
	f = must(t, "{kind: latency, clock: wall, from: 10s, factor: 4}")
	assert.Equal(t, engine.Never, f.Until, "for ever stays for ever")
}

func TestChangesToComeAreInOrder(t *testing.T) {
	s := Schedule{
		must(t, "{kind: latency, from: 10s, until: 40s, factor: 4}"),
		must(t, "{kind: latency, from: 20s, factor: 4}"),
	}
	var got []string
	for _, c := range s.After(10 * time.Second) {
		got = append(got, c.At.String())
	}
	assert.Equal(t, []string{"20s", "40s"}, got)
}

func TestProblemsOfAFault(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		_, err := read(t, text, 1)
		assert.ErrorContains(t, err, want)
	}
	f("{kind: gremlins}", `f.yaml: kind: "gremlins" is not one of latency, leak`)
	f("{factor: 3}", `f.yaml: kind: "" is not one of latency, leak`)
	f("{kind: latency}", "f.yaml: factor: missing")
	f("{kind: leak}", "f.yaml: rate: missing; want bytes a simulated second, such as 1048576, or bytes for each request in per_request")
	f("{kind: leak, per_request: 1, limit: 5}", "f.yaml: rate: missing; block and limit are those of what is taken as time goes by")
	f("{kind: leak, rate: -1}", "f.yaml: rate: -1 is not in [0, 1e+12]")
	f("{kind: latency, factor: 0}", "f.yaml: factor: 0 is not in [0.01, 1000]")
	f("{kind: latency, factor: 2, from: 20s, until: 10s}", "f.yaml: until: 10s is not after from, 20s")
	f("{kind: latency, factor: 2, clock: sun}", `f.yaml: clock: "sun" is not one of simulated, wall`)
	f("{kind: latency, factor: 2, foo: 1}", "f.yaml: foo: unknown key; here may stand clock, factor, from, kind, match, until")
}
