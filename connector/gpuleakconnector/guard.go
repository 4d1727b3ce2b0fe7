// SPDX-License-Identifier: Apache-2.0

package gpuleakconnector

import (
	"math"
	"strconv"
	"time"

	"github.com/otelcol-llm/otelcol-llm/connector/gpuleakconnector/internal/leak"
	"github.com/otelcol-llm/otelcol-llm/internal/gpuwatch"
)

// remindGuard tells of the leaks that were open before a restart.
func (e *engine) remindGuard() {
	if e.guard == nil {
		return
	}
	e.mu.Lock()
	open := e.fleet.Open()
	e.mu.Unlock()
	for i := range open {
		e.tellGuard(&open[i])
	}
}

// tellGuard tells of a leak that opens or closes. One of a device, which is of no process, has the PID 0.
func (e *engine) tellGuard(ev *leak.Event) {
	if e.guard == nil {
		return
	}
	pid, err := strconv.Atoi(ev.Process.PID)
	if err != nil {
		pid = 0
	}
	e.guard.Leak(gpuwatch.Leak{
		ID: ev.ID, Open: ev.Opened, Host: ev.Process.Host, PID: pid, Device: ev.Device, Executable: ev.Executable, Cause: ev.Cause, At: ev.Time,
		Exhaustion: lasts(ev.Exhaustion),
	})
}

// lasts is how long something is left, of a number of seconds: ten years at most, and 0 only of what is not known.
func lasts(seconds float64) time.Duration {
	const longest = 10 * 365 * 24 * 3600.0
	if seconds < 0 || math.IsNaN(seconds) {
		return 0
	}
	return max(1, time.Duration(min(seconds, longest)*float64(time.Second)))
}
