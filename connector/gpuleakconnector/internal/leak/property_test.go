// SPDX-License-Identifier: Apache-2.0

package leak

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otelcol-llm/otelcol-llm/internal/checkpoint"
	"github.com/otelcol-llm/otelcol-llm/internal/trend"
)

// Guarantees: whatever comes, limits hold, each leak that opens closes at most once, what is written can be read, and what was read is
// what was written.
func TestWhateverComesTheFleetStaysWhole(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := newRig(t, func(o *Options) { o.MaxProcesses, o.Trend = 5, trend.OptionsFor(time.Minute) })
		now := t0
		for range rapid.IntRange(1, 400).Draw(rt, "points") {
			now += rapid.Int64Range(0, int64(20*time.Second)).Draw(rt, "later")
			w := Where{
				Host: "a", PID: rapid.SampledFrom([]string{"", "1", "2", "3", "4", "5", "6"}).Draw(rt, "pid"),
				Device: rapid.SampledFrom([]string{"", "GPU-0", "GPU-1"}).Draw(rt, "device"), Executable: rapid.SampledFrom([]string{"", "x", "y"}).Draw(rt, "program"),
				Series: rapid.Uint64Range(0, 3).Draw(rt, "series"), Instance: rapid.Uint64Range(0, 2).Draw(rt, "instance"),
				SLO: rapid.SampledFrom([]string{"", "a", "b"}).Draw(rt, "slo"), Window: rapid.SampledFrom([]string{"", "1h", "2h"}).Draw(rt, "window"),
				Names: Names{
					Container: rapid.SampledFrom([]string{"", "c1", "c2"}).Draw(rt, "container"), Pod: rapid.SampledFrom([]string{"", "p1", "p2"}).Draw(rt, "pod"),
					Namespace: "n", Relation: rapid.SampledFrom([]string{"", "r1", "r2"}).Draw(rt, "relation"),
				},
			}
			at := now - rapid.Int64Range(0, int64(2*time.Minute)).Draw(rt, "late")
			r.Hear(at, Kind(rapid.IntRange(0, int(kinds)-1).Draw(rt, "kind")), &w, float64(rapid.IntRange(0, 1000).Draw(rt, "value")))
			if rapid.Bool().Draw(rt, "judge") {
				r.advance(now - int64(30*time.Second))
			}
		}
		assert.LessOrEqual(rt, len(r.devices), 5)
		open := map[string]bool{}
		for _, ev := range r.events {
			assert.NotEqual(rt, ev.Opened, open[ev.ID])
			open[ev.ID] = ev.Opened
		}
		h, shards := r.State()
		var all []ProcessState
		for _, some := range shards {
			all = append(all, some...)
		}
		data, err := checkpoint.Encode(all)
		require.NoError(rt, err)
		var back []ProcessState
		require.NoError(rt, checkpoint.Decode(data, &back))
		next := newRig(t, func(o *Options) { o.MaxProcesses, o.Trend = 50, trend.OptionsFor(time.Minute) })
		left, err := next.Restore(h, back)
		require.NoError(rt, err)
		assert.Zero(rt, left)
		h2, again := next.State()
		assert.Equal(rt, h, h2)
		assert.Equal(rt, len(shards), len(again))
		var count int
		for _, some := range again {
			count += len(some)
		}
		assert.Equal(rt, len(all), count)
	})
}
