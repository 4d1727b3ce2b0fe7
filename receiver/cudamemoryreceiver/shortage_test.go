// SPDX-License-Identifier: Apache-2.0

package cudamemoryreceiver

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/receiver/cudamemoryreceiver/internal/probe"
)

// Scenario: processes allocate beyond max_entries, more and more, then for a while not, then again.
// Guarantees: a line and the status say so, naming the setting and what to try; the line again when that is not enough any more, and
// else once an hour; the status until a minute after the last one.
func TestWhatThereIsNoRoomForIsTold(t *testing.T) {
	r := newRig(t, func(cfg *Config) { cfg.MaxEntries = 1000 })
	lines := func() int { return r.console.FilterMessage("allocations are not counted, for want of room").Len() }
	status := func(want componentstatus.Status, text string) {
		t.Helper()
		got, of := r.status()
		assert.Equal(t, want, got)
		assert.Equal(t, text, of)
	}
	tooFew := func(next int) string {
		return fmt.Sprintf("max_entries: 1000 is too few: what processes allocate beyond it is not in their cuda.memory.live; "+
			"try %d, of which each takes 345 bytes of the kernel's memory", next)
	}
	r.kernel.add(7, 1, 0)
	r.pass(20 * time.Second)
	status(componentstatus.StatusOK, "<nil>")
	r.kernel.drops = probe.Drops{Live: 500, UnknownFrees: 9}
	r.pass(11 * time.Second)
	status(componentstatus.StatusRecoverableError, tooFew(2000))
	require.Equal(t, 1, lines())
	line := r.console.All()[r.console.Len()-1]
	assert.Equal(t, zap.WarnLevel, line.Level)
	assert.Equal(t, map[string]any{"allocations": uint64(500), "error": tooFew(2000)}, line.ContextMap())
	r.kernel.drops.Live = 700
	r.pass(30 * time.Second)
	assert.Equal(t, 1, lines())
	r.kernel.drops.Live = 3000
	r.pass(11 * time.Second)
	status(componentstatus.StatusRecoverableError, tooFew(8000))
	assert.Equal(t, 2, lines())

	r.pass(50 * time.Second)
	status(componentstatus.StatusRecoverableError, tooFew(8000))
	r.pass(20 * time.Second)
	status(componentstatus.StatusOK, "<nil>")
	r.kernel.drops.Live++
	r.pass(20 * time.Second)
	status(componentstatus.StatusRecoverableError, tooFew(8000))
	assert.Equal(t, 2, lines())
	r.pass(time.Hour)
	r.kernel.drops.Live++
	r.pass(20 * time.Second)
	assert.Equal(t, 3, lines())
	assert.Equal(t, 1, r.console.FilterMessage("CUDA memory is watched").Len())
}

// Guarantees: what is given as advice has room for all that were live at one time, in the share of one process, and not for those
// that came and went.
func TestTheNextLimitHasRoomForWhatWasLive(t *testing.T) {
	f := func(limit, want uint64, drops ...probe.Drops) {
		t.Helper()
		var s shortage
		for _, d := range drops {
			s.heard(&d, t0)
		}
		assert.Equal(t, want, s.next(limit))
	}
	f(65536, 131072, probe.Drops{Live: 1})
	f(65536, 131072, probe.Drops{Live: 49152})
	f(65536, 262144, probe.Drops{Live: 49153})
	f(65536, 131072, probe.Drops{Live: 1e9, UnknownFrees: 1e9 - 5})
	f(65536, 262144, probe.Drops{Live: 100_000}, probe.Drops{Live: 200_000, UnknownFrees: 200_000})
	f(65536, mostEntries, probe.Drops{Live: 1e12})
	f(mostEntries, mostEntries, probe.Drops{Live: 1})
}

// Guarantees: what the kernel has no memory for names the setting.
func TestTooManyEntriesNameTheSetting(t *testing.T) {
	r := newRig(t, nil)
	r.kernel.refuses = fmt.Errorf("%w: map create: cannot allocate memory", probe.ErrMemory)
	r.pass(time.Second)
	_, text := r.status()
	assert.Equal(t, "max_entries: 65536: too many for the kernel's memory: map create: cannot allocate memory", text)
}
