// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/otelcol-llm/otelcol-llm/internal/gpuwatch"
)

// Guarantees: whatever is told in whatever order, what is added up as it comes is what adding up all of it anew gives, and nothing is
// kept of a process of which nothing is known.
func TestWhatIsAddedUpAsItComesIsRight(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		o := options()
		o.MaxDevices, o.MaxProcesses = 3, 6
		if rapid.Bool().Draw(rt, "configured") {
			o.DeviceMemory = 100 * gib
		}
		s, now := New(o), t0
		device := rapid.SampledFrom([]string{"", "a", "b", "c", "d"})
		who := rapid.Map(rapid.IntRange(1, 8), pid)
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			now += rapid.Int64Range(0, 5*second).Draw(rt, "wait")
			at := now - rapid.Int64Range(0, 2*second).Draw(rt, "lag")
			switch rapid.IntRange(0, 6).Draw(rt, "what") {
			case 0, 1:
				s.Live(gpuwatch.Live{Process: who.Draw(rt, "who"), Device: device.Draw(rt, "on"), Bytes: rapid.Uint64Range(0, 100*gib).Draw(rt, "bytes"), At: at}, now)
			case 2:
				d := gpuwatch.Device{ID: device.Draw(rt, "device"), Total: 100 * gib, Used: rapid.Uint64Range(0, 100*gib).Draw(rt, "used"), At: at}
				for _, p := range rapid.SliceOfN(who, 0, 4).Draw(rt, "held") {
					d.Processes = append(d.Processes, gpuwatch.Held{Process: p, Bytes: gib})
				}
				s.Device(d, now)
			case 3:
				s.Gone(who.Draw(rt, "gone"), now)
			case 4:
				s.Acted(now)
			case 5:
				now += rapid.Int64Range(0, 900*second).Draw(rt, "silence")
				s.Expire(now)
			case 6:
				now -= rapid.Int64Range(0, 900*second).Draw(rt, "set back")
				s.Due(now)
			}
			check(rt, s)
		}
	})
}

func check(t assert.TestingT, s *State) {
	sums := func() (all []string) {
		for _, v := range s.devices {
			all = append(all, fmt.Sprint(v.id, " ", v.live, " ", v.grown))
		}
		return all
	}
	before := sums()
	s.place()
	assert.ElementsMatch(t, before, sums())
	for id, p := range s.processes {
		known := p.live.known
		for _, d := range s.devices {
			_, holds := d.read.held[id]
			known = known || holds
		}
		assert.True(t, known || len(s.devices) == 0 || p.id == id)
	}
	assert.LessOrEqual(t, len(s.devices), 3)
	assert.LessOrEqual(t, len(s.processes), 6)
}
