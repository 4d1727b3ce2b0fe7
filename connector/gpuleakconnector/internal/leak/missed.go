// SPDX-License-Identifier: Apache-2.0

package leak

import "github.com/otelcol-llm/otelcol-llm/internal/trend"

// What a process has allocated and not freed is counted call by call. Where calls were missed, of memory that was there before anybody counted
// or of which there was too much, the count rises and falls by what was not heard: from the last such call on, it begins anew.

// misses are the calls of a process that were missed, by series of the counter.
type misses struct {
	calls map[uint64]float64
	last  int64 // when one was missed last, in event time; 0 for never
	told  bool  // to the operator
}

// take notes how many calls were missed so far, and reports whether that has changed: a counter that fell has begun anew, and so has the
// count of memory.
func (m *misses) take(o *observation) bool {
	before, known := m.calls[o.where.Series]
	if !known && len(m.calls) >= maxLoads {
		return false
	}
	if m.calls == nil {
		m.calls = map[uint64]float64{}
	}
	m.calls[o.where.Series] = o.value
	if before == o.value {
		return false
	}
	m.last = max(m.last, o.at)
	return true
}

// missed takes a point of the calls that were missed.
func (f *Fleet) missed(o *observation) {
	p := f.process(o)
	if p == nil {
		return
	}
	p.heard = max(p.heard, o.at)
	if !p.misses.take(o) {
		return
	}
	for _, place := range p.places {
		place.live = trend.Series{}
	}
}

// counts reports whether the count of a process's memory has been whole for as long as a verdict needs.
func (f *Fleet) counts(p *Process, at int64) bool {
	return p.misses.last == 0 || at-p.misses.last > int64(f.options.Trend.MinDuration)
}

// holds reports whether the leak of a process that is open stays so, because nobody can tell its end: it was found in what the process
// has allocated, of which calls are missed since.
func (f *Fleet) holds(p *Process, at int64) bool {
	if p.misses.last == 0 || at-p.misses.last > 2*int64(f.options.Trend.MinDuration) {
		return false
	}
	for _, place := range p.places {
		if place.Device == p.open.Device {
			return place.used.Since() == 0
		}
	}
	return false
}
