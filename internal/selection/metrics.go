// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/contexts/ottldatapoint"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/readmostly"
)

// Metrics finds what the SLOs of a catalog make of metrics.
type Metrics struct {
	*compiled[*ottldatapoint.TransformContext]
	stems map[string][]*Use // by every spelling of their metric's name without a suffix
	known *readmostly.Map[string, *Matcher]
}

// maxKnownNames bounds the memory of names; beyond it a name is looked up anew each time it comes.
const maxKnownNames = 10_000

// ForMetrics compiles the metric selectors of all SLOs that are measured here. It reports all expressions that do not
// parse, each with the place of its SLO.
func ForMetrics(catalog *openslo.Catalog, set component.TelemetrySettings) (*Metrics, error) {
	parser, err := pointParser(set)
	if err != nil {
		return nil, err
	}
	c, err := compile(catalog, openslo.SignalMetrics, newLanguage(parser, pointPaths))
	m := &Metrics{compiled: c, stems: map[string][]*Use{}, known: readmostly.New[string, *Matcher](maxKnownNames)}
	for i := range m.uses {
		use := &m.uses[i]
		for _, stem := range stems(escape(use.metric)) {
			m.stems[stem] = append(m.stems[stem], use)
		}
	}
	return m, err
}

// Uses are all uses of metrics, by Use.Index, in the order of the catalog's SLOs. They must not be written to.
func (m *Metrics) Uses() []Use { return m.uses }

// Of returns what decides on the points of a metric, nil for a metric that serves no SLO.
func (m *Metrics) Of(name string) *Matcher {
	if of, ok := m.known.Get(name); ok {
		return of
	}
	of := m.matcher(name)
	m.known.GetOrPut(strings.Clone(name), func() *Matcher { return of })
	return of
}

func (m *Metrics) matcher(name string) *Matcher {
	uses := m.find(name)
	if len(uses) == 0 {
		return nil
	}
	of := &Matcher{metrics: m}
	for _, use := range uses {
		of.root.add(use.Index, &m.programs[use.Index])
	}
	return of
}

// find returns the uses of a metric by its name. It costs the same whatever the number of uses that are of other metrics.
func (m *Metrics) find(name string) (uses []*Use) {
	for _, stem := range stems(escape(name)) {
		for _, use := range m.stems[stem] {
			if SameMetric(use.metric, name) {
				uses = append(uses, use)
			}
		}
	}
	slices.SortFunc(uses, func(a, b *Use) int { return cmp.Compare(a.Index, b.Index) })
	return slices.Compact(uses) // two stems may lead to one use
}

// Matcher decides which uses the points of one metric serve.
type Matcher struct {
	metrics *Metrics
	root    node[*ottldatapoint.TransformContext]
}

// Match returns the uses (indices in Metrics.Uses, rising) that a data point serves. The result is shared or has the memory
// of into: it must not be written to, and not be kept. A condition that cannot be evaluated does not hold; those are the
// errors.
func Match[P interface{ Attributes() pcommon.Map }](
	ctx context.Context, m *Matcher, into []int, rm pmetric.ResourceMetrics, sm pmetric.ScopeMetrics, metric pmetric.Metric, point P,
) ([]int, error) {
	if m.root.leaf() {
		return m.root.uses, nil
	}
	w := walk[*ottldatapoint.TransformContext]{
		ctx: ctx, at: place{metric.Name(), point.Attributes(), sm.Scope().Attributes(), rm.Resource().Attributes()},
	}
	defer w.close()
	return w.find(&m.root, func() *ottldatapoint.TransformContext {
		return ottldatapoint.NewTransformContextPtr(rm, sm, metric, point)
	}, into), w.err()
}

// Counts reports whether a point that Match has found for a use adds to it, by the spec's `counted`. One that does not is
// input all the same.
func Counts[P any](
	ctx context.Context, m *Matcher, use int, rm pmetric.ResourceMetrics, sm pmetric.ScopeMetrics, metric pmetric.Metric, point P,
) (bool, error) {
	counted := m.metrics.programs[use].counted
	if counted == nil {
		return true, nil
	}
	tc := ottldatapoint.NewTransformContextPtr(rm, sm, metric, point)
	defer tc.Close()
	holds, err := counted.cond.Eval(ctx, tc)
	if err != nil {
		return false, &Error{use, "counted", err}
	}
	return holds, nil
}
