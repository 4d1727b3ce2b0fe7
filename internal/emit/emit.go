// SPDX-License-Identifier: Apache-2.0

// Package emit is the one way in which components write metrics: a table says what they are called, a Batch puts
// points into them.
package emit

import (
	"fmt"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Kind is the shape of a metric.
type Kind int

const (
	// Gauge holds doubles.
	Gauge Kind = iota
	// Counter is a cumulative monotonic sum of integers.
	Counter
	// StateSet is a gauge of 0 and 1 with one point a state, of which exactly one is 1 (OpenMetrics).
	StateSet
)

func (k Kind) String() string { return [...]string{"gauge", "counter", "state set"}[k] }

// Metric describes a metric that a component emits.
type Metric struct {
	Name        string
	Description string
	Unit        string // UCUM; empty where an attribute says it
	Kind        Kind
	Attributes  []string // beyond those that all points of the component carry; for documentation
	States      []string // of a StateSet, the values of the attribute state
}

// Batch collects points. Points of one metric and resource stand together, whatever the order in which they come.
type Batch struct {
	md        pmetric.Metrics
	scope     string
	resources map[string]*Resource
	points    int
}

// NewBatch returns an empty batch of an instrumentation scope.
func NewBatch(scope string) *Batch {
	return &Batch{md: pmetric.NewMetrics(), scope: scope, resources: map[string]*Resource{}}
}

// Metrics is what was collected. The batch must not be used after it is handed on.
func (b *Batch) Metrics() pmetric.Metrics { return b.md }

// Points is the number of points collected.
func (b *Batch) Points() int { return b.points }

// Resource is where points of one resource go.
type Resource struct {
	batch   *Batch
	scope   pmetric.ScopeMetrics
	metrics map[*Metric]pmetric.NumberDataPointSlice
}

// Resource returns the resource with a key, which fill describes when it is new.
func (b *Batch) Resource(key string, fill func(pcommon.Map)) *Resource {
	if r := b.resources[key]; r != nil {
		return r
	}
	rm := b.md.ResourceMetrics().AppendEmpty()
	fill(rm.Resource().Attributes())
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName(b.scope)
	r := &Resource{batch: b, scope: sm, metrics: map[*Metric]pmetric.NumberDataPointSlice{}}
	b.resources[key] = r
	return r
}

func (r *Resource) point(m *Metric, at int64) pmetric.NumberDataPoint {
	points, ok := r.metrics[m]
	if !ok {
		metric := r.scope.Metrics().AppendEmpty()
		metric.SetName(m.Name)
		metric.SetDescription(m.Description)
		metric.SetUnit(m.Unit)
		if m.Kind == Counter {
			sum := metric.SetEmptySum()
			sum.SetIsMonotonic(true)
			sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			points = sum.DataPoints()
		} else {
			points = metric.SetEmptyGauge().DataPoints()
		}
		r.metrics[m] = points
	}
	r.batch.points++
	p := points.AppendEmpty()
	p.SetTimestamp(pcommon.Timestamp(at))
	return p
}

// Gauge adds a point at a time in Unix nanoseconds and returns its attributes to be filled.
func (r *Resource) Gauge(m *Metric, at int64, value float64) pcommon.Map {
	p := r.point(m, at)
	p.SetDoubleValue(value)
	return p.Attributes()
}

// Counter adds the count since start and returns the attributes to be filled.
func (r *Resource) Counter(m *Metric, start, at int64, value uint64) pcommon.Map {
	p := r.point(m, at)
	p.SetStartTimestamp(pcommon.Timestamp(start))
	p.SetIntValue(int64(value))
	return p.Attributes()
}

// StateSet adds a point for every state, 1 for the current one. fill describes each point.
func (r *Resource) StateSet(m *Metric, at int64, current int, fill func(pcommon.Map)) {
	for i, state := range m.States {
		p := r.point(m, at)
		if i == current {
			p.SetIntValue(1)
		} else {
			p.SetIntValue(0)
		}
		fill(p.Attributes())
		p.Attributes().PutStr("state", state)
	}
}

// Stale says that nothing more is told of a series, and returns the attributes to be filled: backends end it at once and
// need not wait until they forget it (https://opentelemetry.io/docs/specs/otel/metrics/data-model/#no-recorded-value).
func (r *Resource) Stale(m *Metric, at int64) pcommon.Map {
	p := r.point(m, at)
	p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	return p.Attributes()
}

// Document writes the table of metrics as Markdown, for a component's documentation.md.
func Document(title string, metrics []*Metric) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\nGenerated from the table in the code; do not edit.\n\n", title)
	b.WriteString("| metric | kind | unit | attributes | meaning |\n|---|---|---|---|---|\n")
	for _, m := range metrics {
		attributes := append([]string(nil), m.Attributes...)
		if m.Kind == StateSet {
			attributes = append(attributes, "`state` = "+strings.Join(m.States, ", "))
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", m.Name, m.Kind, m.Unit, strings.Join(attributes, "; "), m.Description)
	}
	return b.String()
}
