// SPDX-License-Identifier: Apache-2.0

// Package clock maps simulated time to the wall's: simulated time 0 is when the
// simulation started, and Speed simulated seconds go by in one of the wall's.
package clock

import "time"

// Clock is the mapping. Speed is above 0.
type Clock struct {
	Start time.Time
	Speed float64
}

// Simulated is the simulated time at a time on the wall.
func (c Clock) Simulated(wall time.Time) time.Duration {
	return time.Duration(float64(wall.Sub(c.Start)) * c.Speed)
}

// Wall is the time on the wall at a simulated time.
func (c Clock) Wall(simulated time.Duration) time.Time {
	return c.Start.Add(time.Duration(float64(simulated) / c.Speed))
}
