// SPDX-License-Identifier: Apache-2.0

package heat

import (
	"maps"
	"math"
	"slices"

	"github.com/otelcol-llm/otelcol-llm/internal/baseline"
	"github.com/otelcol-llm/otelcol-llm/internal/explain"
)

// explain says which values of which dimensions the bad events of the closing window have in common, while a cell of the
// promise drifts. What explains nothing any more is told once.
func (p *promise) explain(end int64) {
	tell := p.of.opts.Explained
	if tell == nil {
		return
	}
	before := p.explained
	p.explained = p.explanations()
	for _, x := range before {
		if !slices.ContainsFunc(p.explained, func(now explain.Explanation) bool { return now.Dimension == x.Dimension && now.Value == x.Value }) {
			tell(&Explanation{SLO: p.slo, End: end, Dimension: x.Dimension, Value: x.Value, Share: math.NaN()})
		}
	}
	p.explainedAt = end
	p.eachExplanation(tell)
}

func (p *promise) eachExplanation(f func(*Explanation)) {
	for _, x := range p.explained {
		f(&Explanation{SLO: p.slo, End: p.explainedAt, Dimension: x.Dimension, Value: x.Value, Share: x.Share})
	}
}

// EachExplanation calls f for everything that the window which closed last has explained.
func (m *Map) EachExplanation(f func(*Explanation)) {
	for _, p := range m.promises {
		p.eachExplanation(f)
	}
}

func (p *promise) explanations() []explain.Explanation {
	drifts := false
	for _, c := range p.cells {
		drifts = drifts || c.closing != nil && c.result.State >= baseline.Drifting
	}
	if !drifts {
		return nil
	}
	var all []explain.Dimension
	for d, name := range p.of.opts.Dimensions {
		values := map[string]*explain.Value{}
		for _, c := range p.cells {
			if c.closing == nil || c.Overflow {
				continue
			}
			v := values[c.Values[d]]
			if v == nil {
				v = &explain.Value{Name: c.Values[d]}
				values[v.Name] = v
			}
			bad, total := p.bad(c.closing)
			v.Bad += bad
			v.Total += total
		}
		dimension := explain.Dimension{Name: name}
		for _, value := range slices.Sorted(maps.Keys(values)) {
			dimension.Values = append(dimension.Values, *values[value])
		}
		all = append(all, dimension)
	}
	return explain.Rank(nil, all, explain.DefaultOptions())
}
