// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/gpuwatch"
)

const hour = 3600

// minute reads a device for a minute, each second.
func (r *rig) minute(used uint64) {
	for range 60 {
		r.reads(gpu, used, holds(7, used))
		r.wait(1)
	}
}

// leak opens a verdict.
func (r *rig) leak(id string, process int) bool {
	return r.Leak(gpuwatch.Leak{ID: id, Open: true, Host: "here", PID: process, Device: gpu, At: r.now}, r.now)
}

// Scenario: a device was too full when the clock was set back, and is nearly empty since.
// Guarantees: readings of after it are believed, so that nobody is ended, neither at once nor after somebody was.
func TestAReadingOfBeforeTheClockWasSetBackIsNotBelieved(t *testing.T) {
	r := newRig(t, nil)
	r.minute(90)
	require.Equal(t, []string{gpu}, r.due())
	held := r.Due(r.now)[0]
	r.wait(-hour)
	assert.False(t, r.Holds(&held, pid(7), r.now), "nobody knows yet")
	assert.Empty(t, r.due())
	r.minute(10)
	assert.Empty(t, r.due())
	assert.Equal(t, uint64(10), r.used(gpu))
	r.Acted(r.now)
	r.minute(10)
	assert.Empty(t, r.due())
}

func TestADeviceThatIsTooFullAfterTheClockWasSetBackIsDue(t *testing.T) {
	r := newRig(t, nil)
	r.minute(10)
	r.wait(-hour)
	r.minute(95)
	assert.Equal(t, []string{gpu}, r.due())
	assert.Less(t, r.Due(r.now)[0].Above, 2*time.Minute)
	assert.Equal(t, []int{7}, r.candidates(gpu))
	r.Due(r.now)[0].NotBefore = r.now + second
	r.wait(-hour)
	r.minute(95)
	assert.Equal(t, []string{gpu}, r.due(), "what was put off is not put off for an hour")

	r = newRig(t, configured)
	r.lives(7, gpu, 10)
	r.wait(-hour)
	r.lives(7, gpu, 95)
	assert.Empty(t, r.due())
	r.wait(3)
	assert.Equal(t, []string{gpu}, r.due())
	r.wait(-hour)
	assert.Empty(t, r.due(), "since when it is so is counted anew")
	r.wait(3)
	assert.Equal(t, []string{gpu}, r.due(), "what is told on change stays true")
}

func TestALeakIsDueAfterTheClockWasSetBack(t *testing.T) {
	r := newRig(t, nil)
	r.reads(gpu, 10, holds(1001, 10))
	r.wait(5)
	require.True(t, r.leak("before", 1001))
	require.Equal(t, []string{"before"}, r.due())
	r.wait(-hour)
	r.reads(gpu, 10, holds(1001, 10))
	require.True(t, r.leak("after", 1001))
	assert.ElementsMatch(t, []string{"before", "after"}, r.due(), "it was started before both")
}

func TestTimesThatPassEachOtherAreNoClockThatWasSet(t *testing.T) {
	r := newRig(t, nil)
	r.minute(90)
	r.wait(-0.5)
	assert.Equal(t, []string{gpu}, r.due())
}
