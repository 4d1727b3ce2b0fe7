// SPDX-License-Identifier: Apache-2.0

// Package selection finds the data points that the SLOs of a catalog are made of. It is the one way in which
// components match data with promises.
package selection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/contexts/ottldatapoint"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/ottlfuncs"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// Role says which part of an indicator a data point is.
type Role int

// The roles. A threshold indicator has values; a ratio has two of good, bad and total, or is raw.
const (
	Value Role = iota
	Good
	Bad
	Total
	RawSuccess
	RawFailure
)

// Use is one way in which a metric serves an SLO.
type Use struct {
	SLO     int // index in Catalog.SLOs
	Role    Role
	Counter bool // the spec says that the source only grows, whatever its type says
	metric  string
	unit    string  // base unit of the SLO
	scale   float64 // by the spec
	cond    *ottl.Condition[*ottldatapoint.TransformContext]
	// condition is what cond was compiled from.
	condition string
}

// Scale is what a value of a metric of this name and unit is multiplied by to give the SLO's base unit. The unit that the
// data carries is believed first, then the one that its name ends in, then that of the spec: the producer knows what it
// measured. Units of something else than the SLO's are not believed.
func (u *Use) Scale(name, unit string) float64 {
	if base, scale, ok := openslo.BaseUnit(unit); ok && base == u.unit {
		return scale
	}
	if base, scale, ok := openslo.UnitOfSuffix(name); ok && base == u.unit {
		return scale
	}
	return u.scale
}

// Conditional reports whether the use has an OTTL condition, so that callers who need not ask do not pay for it.
func (u *Use) Conditional() bool { return u.cond != nil }

// Accepts evaluates the condition on a data point (pmetric.NumberDataPoint and kin).
func (u *Use) Accepts(ctx context.Context, rm pmetric.ResourceMetrics, sm pmetric.ScopeMetrics, m pmetric.Metric, point any) (bool, error) {
	if u.cond == nil {
		return true, nil
	}
	tc := ottldatapoint.NewTransformContextPtr(rm, sm, m, point)
	defer tc.Close()
	return u.cond.Eval(ctx, tc)
}

// Metrics finds uses by the name of a metric. It is not safe for concurrent use: it learns the names it meets.
type Metrics struct {
	uses  []Use
	stems map[string][]*Use // by every spelling of their metric's name without a suffix
	known map[string][]*Use
}

// maxKnownNames bounds the memory of names; beyond it a name is looked up anew each time it comes.
const maxKnownNames = 10_000

// ForMetrics compiles the metric selectors of all SLOs that are measured here. It reports all conditions that
// do not parse, each with the place of its SLO.
func ForMetrics(catalog *openslo.Catalog, set component.TelemetrySettings) (*Metrics, error) {
	parser, err := ottldatapoint.NewParser(
		ottlfuncs.StandardConverters[*ottldatapoint.TransformContext](), set, ottldatapoint.EnablePathContextNames())
	if err != nil {
		return nil, err
	}
	m := &Metrics{stems: map[string][]*Use{}, known: map[string][]*Use{}}
	var errs []error
	for i := range catalog.SLOs {
		slo := &catalog.SLOs[i]
		if !slo.Evaluated() {
			continue
		}
		for _, part := range parts(&slo.Indicator) {
			if part.selector == nil || part.selector.Signal != openslo.SignalMetrics {
				continue
			}
			use := Use{
				SLO: i, Role: part.role, metric: part.selector.Metric, unit: slo.Unit, scale: part.selector.Scale,
				Counter: slo.Indicator.Ratio != nil && slo.Indicator.Ratio.Counter,
			}
			if use.condition = part.selector.Condition; use.condition != "" {
				if use.cond, err = parser.ParseCondition(use.condition); err != nil {
					errs = append(errs, fmt.Errorf("%s:%d: slo %q: condition: %w", slo.Position.File, slo.Position.Line, slo.Name, err))
				}
			}
			m.uses = append(m.uses, use)
		}
	}
	for i := range m.uses {
		use := &m.uses[i]
		for _, stem := range stems(escape(use.metric)) {
			m.stems[stem] = append(m.stems[stem], use)
		}
	}
	return m, errors.Join(errs...)
}

// find returns the uses of a metric by its name. It costs the same whatever the number of uses that are of other metrics.
func (m *Metrics) find(name string) (uses []*Use) {
	for _, stem := range stems(escape(name)) {
		for _, use := range m.stems[stem] {
			if SameMetric(use.metric, name) && !slices.Contains(uses, use) {
				uses = append(uses, use)
			}
		}
	}
	slices.SortStableFunc(uses, func(a, b *Use) int { return cmp.Compare(a.SLO, b.SLO) })
	return uses
}

type part struct {
	role     Role
	selector *openslo.Selector
}

func parts(in *openslo.Indicator) []part {
	if in.Ratio == nil {
		return []part{{Value, in.Threshold}}
	}
	raw := RawSuccess
	if in.Ratio.RawType == openslo.RawFailure {
		raw = RawFailure
	}
	return []part{{Good, in.Ratio.Good}, {Bad, in.Ratio.Bad}, {Total, in.Ratio.Total}, {raw, in.Ratio.Raw}}
}

// Of returns the uses of a metric by its name, nil for a metric that serves no SLO. The result is shared.
func (m *Metrics) Of(name string) []*Use {
	if uses, ok := m.known[name]; ok {
		return uses
	}
	uses := m.find(name)
	if len(m.known) < maxKnownNames {
		m.known[name] = uses
	}
	return uses
}
