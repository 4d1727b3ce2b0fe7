// SPDX-License-Identifier: Apache-2.0

package leak

import (
	"math"

	"github.com/otelcol-llm/otelcol-llm/connector/gpuleakconnector/internal/cause"
	"github.com/otelcol-llm/otelcol-llm/internal/trend"
)

// judgeDevice says what there is to say of the memory of a device that is of no process: what is told to be of none, or all that is in use where
// nothing is told of processes on it. It reports whether that is anything.
func (f *Fleet) judgeDevice(d *Process, at int64, result trend.Result, seen cause.Seen) bool {
	place := d.places[0]
	whole := place.used.Since() == 0 && place.device.Since() != 0 && (d.told == 0 || at-d.told > int64(f.options.Trend.MinDuration))
	if place.whole && !whole && f.options.Gone != nil {
		f.options.Gone(place, at)
	}
	place.whole = whole
	var facts cause.Facts
	elsewhere := whole && result.State >= trend.Suspect && f.toldElsewhere(d.Host)
	switch {
	case whole:
		facts.Device = seen
		if place.Result = result; elsewhere { // it would be told twice
			place.Result = trend.Result{Rate: unknown, Exhaustion: unknown, PerServed: math.NaN(), PerRequest: result.PerRequest, PerRequestFirst: result.PerRequestFirst}
		}
	case place.used.Since() != 0:
		place.Result, facts.Unattributed = f.look(&place.used, at, trend.Headroom{Bytes: place.left, Taken: d.taken})
	default:
		place.Result, place.Stood, place.Standing = trend.Result{}, Unheard, Unheard
		if d.open != nil {
			f.end(d, at, "its processes are told now")
		}
		return false // it is only known how much there is
	}
	if place.stands(true); elsewhere {
		place.Standing = Elsewhere
	}
	f.explain(place, facts)
	return true
}

// toldElsewhere reports whether a process of a host that tells no device was found to grow: it is what a device shows.
func (f *Fleet) toldElsewhere(host string) bool {
	for _, p := range f.processes {
		if p.Host != host {
			continue
		}
		for _, place := range p.places {
			if place.Device == "" && place.used.Since()+place.live.Since() != 0 && place.Result.State >= trend.Suspect {
				return true
			}
		}
	}
	return false
}

// noteProcesses notes of which devices processes tell their memory.
func (f *Fleet) noteProcesses(at int64) {
	for _, p := range f.processes {
		for _, place := range p.places {
			if d := f.devices[ID{Host: p.Host, Device: place.Device}]; d != nil && place.Judged() && place.Standing != CallsMissed && at-place.heard <= int64(f.options.TTL) {
				d.told = at
			}
		}
	}
}
