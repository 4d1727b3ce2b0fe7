// SPDX-License-Identifier: Apache-2.0

package leak

import "github.com/otelcol-llm/otelcol-llm/internal/trend"

// load is the traffic of a process. An engine may tell it in several series, by model and by rank, which are added up.
type load struct {
	own     bool // it is told by the process itself, so that of its device is not its
	running map[uint64]float64
	cache   map[uint64]float64
}

// maxLoads bounds the series of one process.
const maxLoads = 1024

// loads gives what was done meanwhile to all memory of a process.
func (f *Fleet) loads(p *Process, o *observation) {
	if p == nil {
		return
	}
	value, give := o.value, f.judge.Served
	switch o.kind {
	case Running:
		value, give = total(&p.load.running, o), f.judge.Running
	case Cache:
		value, give = greatest(&p.load.cache, o), f.judge.Cache
	case Engines, Contexts, Blocks:
		i := o.kind - Engines
		p.counts[i] = max(p.counts[i]+value, 0)
		f.judge.Add(&p.objects[i], o.at, p.counts[i]+1) // none is not near zero; judgeAll repeats it while nothing is said
		return
	}
	for _, place := range p.places {
		for _, s := range []*trend.Series{&place.used, &place.live} {
			if s.Since() != 0 {
				give(s, o.at, value)
			}
		}
	}
}

func keep(of *map[uint64]float64, o *observation) {
	if *of == nil {
		*of = map[uint64]float64{}
	}
	if _, known := (*of)[o.where.Series]; known || len(*of) < maxLoads {
		(*of)[o.where.Series] = o.value
	}
}

func total(of *map[uint64]float64, o *observation) (sum float64) {
	keep(of, o)
	for _, v := range *of {
		sum += v
	}
	return sum
}

func greatest(of *map[uint64]float64, o *observation) (most float64) {
	keep(of, o)
	for _, v := range *of {
		most = max(most, v)
	}
	return most
}
