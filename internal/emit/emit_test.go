// SPDX-License-Identifier: Apache-2.0

package emit

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

var (
	gauge   = &Metric{Name: "g", Description: "a gauge", Unit: "s", Kind: Gauge}
	counter = &Metric{Name: "c", Unit: "{event}", Kind: Counter, Attributes: []string{"`outcome` = good, bad"}}
	state   = &Metric{Name: "s", Kind: StateSet, States: []string{"ok", "violated"}}
)

func TestPointsOfOneMetricStandTogether(t *testing.T) {
	b := NewBatch("scope")
	for _, tenant := range []string{"a", "b", "a"} {
		r := b.Resource(tenant, func(m pcommon.Map) { m.PutStr("tenant", tenant) })
		r.Gauge(gauge, 5, 0.5).PutStr("k", "v")
		r.Counter(counter, 1, 5, 7)
		r.StateSet(state, 5, 1, func(m pcommon.Map) { m.PutStr("k", "v") })
	}
	assert.Equal(t, 12, b.Points())
	md := b.Metrics()
	assert.Equal(t, 2, md.ResourceMetrics().Len())
	assert.Equal(t, 12, md.DataPointCount())
	sm := md.ResourceMetrics().At(0).ScopeMetrics().At(0)
	assert.Equal(t, "scope", sm.Scope().Name())
	assert.Equal(t, 3, sm.Metrics().Len())

	assert.Equal(t, 2, sm.Metrics().At(0).Gauge().DataPoints().Len())
	sum := sm.Metrics().At(1).Sum()
	assert.True(t, sum.IsMonotonic())
	assert.Equal(t, pmetric.AggregationTemporalityCumulative, sum.AggregationTemporality())
	assert.Equal(t, pcommon.Timestamp(1), sum.DataPoints().At(0).StartTimestamp())

	states := sm.Metrics().At(2).Gauge().DataPoints()
	assert.Equal(t, 4, states.Len())
	assert.Equal(t, int64(0), states.At(0).IntValue())
	assert.Equal(t, int64(1), states.At(1).IntValue())
	v, _ := states.At(1).Attributes().Get("state")
	assert.Equal(t, "violated", v.Str())
}

func TestStalePointsHaveNoValue(t *testing.T) {
	b := NewBatch("scope")
	b.Resource("", func(pcommon.Map) {}).Stale(counter, 5).PutStr("k", "v")
	p := b.Metrics().ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().At(0)
	assert.True(t, p.Flags().NoRecordedValue())
	assert.Equal(t, pmetric.NumberDataPointValueTypeEmpty, p.ValueType())
	assert.Equal(t, 1, p.Attributes().Len())
}

func TestDocument(t *testing.T) {
	assert.Equal(t, "# title\n\nGenerated from the table in the code; do not edit.\n\n"+
		"| metric | kind | unit | attributes | meaning |\n|---|---|---|---|---|\n"+
		"| `g` | gauge | s |  | a gauge |\n| `c` | counter | {event} | `outcome` = good, bad |  |\n"+
		"| `s` | state set |  | `state` = ok, violated |  |\n", Document("title", []*Metric{gauge, counter, state}))
}
