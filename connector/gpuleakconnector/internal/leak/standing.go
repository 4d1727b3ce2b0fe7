// SPDX-License-Identifier: Apache-2.0

package leak

import "github.com/otelcol-llm/otelcol-llm/internal/trend"

// Standing is whether there is a verdict on memory. Where there is none, it is not said to be ok.
type Standing uint8

const (
	// Unheard: nothing was said yet.
	Unheard Standing = iota
	// Given: there is one.
	Given
	// Young: it was not seen for long enough.
	Young
	// CallsMissed: what is allocated and not freed is not known, since calls were missed.
	CallsMissed
	// Elsewhere: it is of a device that grows, as a process does that says of no device.
	Elsewhere
)

func (s Standing) String() string {
	return [...]string{"", "given", "young", "calls_missed", "told_elsewhere"}[s]
}

// stands notes whether there is a verdict; counts is whether what was allocated is known.
func (p *Place) stands(counts bool) {
	p.Stood, p.Standing = p.Standing, Given
	switch r := &p.Result; {
	case r.State != trend.OK || r.Rate.Known():
	case p.used.Since() == 0 && !p.whole && !counts:
		p.Standing = CallsMissed
	default:
		p.Standing = Young
	}
}
