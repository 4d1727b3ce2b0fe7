// SPDX-License-Identifier: Apache-2.0

package watch

import "time"

// slack is how far the time may go back without the clock having been set: readings of it pass each other, and clocks are slewed.
const slack = int64(time.Second)

// turn takes the time. Where the clock was set back, what is of a time that is yet to come would be believed until then, and what comes
// would be taken for older: so readings, since when it is too full, growth, and what is waited for begin anew.
func (s *State) turn(now int64) {
	if now > s.now-slack {
		s.now = max(s.now, now)
		return
	}
	back := s.now - now
	s.now, s.look = now, true
	for _, p := range s.processes {
		if p.started != 0 {
			p.started = max(p.started-back, 1)
		}
		p.live.at = min(p.live.at, now)
		p.growth = growth{}
	}
	for _, d := range s.devices {
		// Who holds memory says still where live bytes are.
		d.read.at, d.read.heldAt, d.read.believed, d.read.known = 0, 0, 0, 0
		d.released, d.disagrees, d.dueAt, d.control = 0, false, 0, Control{}
		d.byLive, d.byReading, d.byDoubt = spell{}, spell{}, spell{}
	}
	for _, v := range s.leaks {
		v.At, v.heard, v.dueAt, v.control = v.At-back, v.heard-back, 0, Control{Done: v.control.Done}
	}
	s.placeAndWeigh(now, now)
}
