// SPDX-License-Identifier: Apache-2.0

package window

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otelcol-llm/otelcol-llm/internal/checkpoint"
)

// through brings a state through a checkpoint.
func through[S any](t require.TestingT, in S) (out S) {
	data, err := checkpoint.Encode(in)
	require.NoError(t, err)
	require.NoError(t, checkpoint.Decode(data, &out))
	return out
}

// Scenario: sources of all kinds (slow, fast, too far behind, more than the limit) are heard up to the wall time at which
// the state is taken, and it is restored at that time.
// Guarantees: from then on the watermark is the one of a run that was never interrupted.
func TestARestoredWatermarkIsTheUninterruptedOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole, restored := newWatermark(), newWatermark()
		now := t0
		step := func(all ...*Watermark) {
			id, event := rapid.Uint64Range(1, 6).Draw(t, "source"), now-rapid.Int64Range(-60, 4000).Draw(t, "behind")*sec
			for _, w := range all {
				w.Observe(id, event, now)
			}
		}
		turn := func(all ...*Watermark) {
			lastEnd := rapid.SampledFrom([]int64{Unset, now, now - 100*sec, now - 10000*sec}).Draw(t, "lastEnd")
			for _, w := range all {
				require.Equal(t, all[0].Advance(now, lastEnd), w.Advance(now, lastEnd))
			}
		}
		for range rapid.IntRange(0, 20).Draw(t, "before") {
			step(whole)
			if rapid.Bool().Draw(t, "turn") {
				turn(whole)
			}
		}
		require.NoError(t, restored.Restore(through(t, whole.State()), now))
		for range rapid.IntRange(1, 30).Draw(t, "after") {
			now += rapid.Int64Range(0, 50).Draw(t, "pause") * sec
			if rapid.Bool().Draw(t, "heard") {
				step(whole, restored)
			}
			turn(whole, restored)
			waiting, others := whole.Sources()
			w, o := restored.Sources()
			require.Equal(t, []int{waiting, others}, []int{w, o})
			require.Equal(t, whole.State(), restored.State())
		}
	})
}

// Scenario: the Collector is away for half an hour; one source comes back at once, another one after half a minute, and one
// was idle before.
// Guarantees: nobody is late for having waited, the idle one is not waited for, and the half hour does not count as silence.
func TestARestartIsNoOutageOfTheSources(t *testing.T) {
	w := newWatermark()
	w.Observe(3, t0-100*sec, t0-100*sec)
	w.Observe(1, t0-10*sec, t0)
	w.Observe(2, t0, t0)
	at := w.Advance(t0, Unset)
	assert.Equal(t, t0-40*sec, at)

	restored, back := newWatermark(), t0+1800*sec
	require.NoError(t, restored.Restore(through(t, w.State()), back))
	assert.Equal(t, at, restored.Advance(back, t0+300*sec), "before anybody is heard")
	restored.Observe(2, back, back)
	assert.Equal(t, at, restored.Advance(back+29*sec, t0+300*sec), "it waits for source 1")
	restored.Observe(1, back+20*sec, back+30*sec)
	assert.Equal(t, back-30*sec, restored.Advance(back+30*sec, Unset))
}

func TestARestoredWatermarkWithoutInputIsStillUnset(t *testing.T) {
	w := newWatermark()
	require.NoError(t, w.Restore(through(t, newWatermark().State()), t0))
	assert.Equal(t, Unset, w.Advance(t0+3600*sec, Unset))
}

func TestMoreSourcesThanTheLimitShareOneAfterARestart(t *testing.T) {
	w := NewWatermark(WatermarkOptions{IdleTimeout: time.Minute, MaxLag: time.Hour, MaxSources: 10})
	for id := range uint64(10) {
		w.Observe(id+1, t0+int64(id)*sec, t0)
	}
	restored := newWatermark()
	require.NoError(t, restored.Restore(w.State(), t0))
	waiting, others := restored.Sources()
	assert.Equal(t, []int{4, 0}, []int{waiting, others}) // the limit, and the one that is shared
	assert.Equal(t, t0-30*sec, restored.Advance(t0, Unset), "the slowest counts")
}

func TestAStateThatIsNoWatermarkIsRefused(t *testing.T) {
	f := func(want string, s WatermarkState) {
		t.Helper()
		w := newWatermark()
		assert.ErrorContains(t, w.Restore(s, t0), want)
		assert.Equal(t, newWatermark().State(), w.State())
	}
	f("source a stands there twice", WatermarkState{Sources: []SourceState{{ID: 10}, {ID: 10}}})
	f("source a was heard at 1, after the newest event 0", WatermarkState{Sources: []SourceState{{ID: 10, Newest: 1}}})
	f("after the newest event", WatermarkState{At: Unset, Newest: Unset, Sources: []SourceState{{ID: 10, Newest: 1}}})
}
