// SPDX-License-Identifier: Apache-2.0

package leak

import (
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/trend"
)

// load is the traffic of a process. An engine may tell it in several series, by model and by rank, which are added up.
type load struct {
	told    [3]Told // running, cache, served
	running map[uint64]Load
	cache   map[uint64]Load
}

// Told is by what a kind of traffic was joined, and when last.
type Told struct {
	_     struct{} `cbor:",toarray"`
	By    by
	Heard int64
}

// Load is what a series of traffic said last.
type Load struct {
	_     struct{} `cbor:",toarray"`
	At    int64
	Value float64
}

// maxLoads bounds the series of one process.
const maxLoads = 1024

// forget drops what was said by something else.
func (l *load) forget(kind Kind) {
	switch kind {
	case Running:
		clear(l.running)
	case Cache:
		clear(l.cache)
	}
}

// loads gives what was done meanwhile to all memory of a process.
func (f *Fleet) loads(p *Process, o *observation) {
	value, give := o.value, f.judge.Served
	switch o.kind {
	case Running:
		keep(&p.load.running, o, f.options.TTL)
		value, give = total(p.load.running), f.judge.Running
	case Cache:
		keep(&p.load.cache, o, f.options.TTL)
		value, give = greatest(p.load.cache), f.judge.Cache
	case Engines, Contexts, Blocks:
		i := o.kind - Engines
		p.counts[i] = max(p.counts[i]+value, 0)
		f.judge.Add(&p.objects[i], o.at, p.counts[i]+1) // none is not near zero; judgeAll repeats it while nothing is said
		return
	}
	for _, place := range p.places {
		for _, s := range [...]*trend.Series{&place.used, &place.live, &place.device} {
			if s.Since() != 0 {
				give(s, o.at, value)
			}
		}
	}
}

// keep notes what a series says, and forgets those that have said nothing for long: an engine that has begun anew may tell its own under
// other names.
func keep(of *map[uint64]Load, o *observation, ttl time.Duration) {
	if *of == nil {
		*of = map[uint64]Load{}
	}
	for series, l := range *of {
		if o.at-l.At > int64(ttl) {
			delete(*of, series)
		}
	}
	if _, known := (*of)[o.where.Series]; known || len(*of) < maxLoads {
		(*of)[o.where.Series] = Load{At: o.at, Value: o.value}
	}
}

func total(of map[uint64]Load) (sum float64) {
	for _, l := range of {
		sum += l.Value
	}
	return sum
}

func greatest(of map[uint64]Load) (most float64) {
	for _, l := range of {
		most = max(most, l.Value)
	}
	return most
}
