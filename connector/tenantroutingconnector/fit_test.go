// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// ofAllTypes has, for each type of metric, points whose attributes are so long.
func ofAllTypes(lengths ...int) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "a")
	sm := rm.ScopeMetrics().AppendEmpty()
	metric := func(name string) pmetric.Metric {
		m := sm.Metrics().AppendEmpty()
		m.SetName(name)
		return m
	}
	gauge, sum, histogram := metric("gauge").SetEmptyGauge(), metric("sum").SetEmptySum(), metric("histogram").SetEmptyHistogram()
	exponential, summary := metric("exponential").SetEmptyExponentialHistogram(), metric("summary").SetEmptySummary()
	for _, n := range lengths {
		for _, attrs := range []pcommon.Map{
			gauge.DataPoints().AppendEmpty().Attributes(), sum.DataPoints().AppendEmpty().Attributes(), histogram.DataPoints().AppendEmpty().Attributes(),
			exponential.DataPoints().AppendEmpty().Attributes(), summary.DataPoints().AppendEmpty().Attributes(),
		} {
			attrs.PutStr("prompt", strings.Repeat("x", n))
		}
	}
	return md
}

// Scenario: among what a tenant sends at once are points that are larger than a batch may be.
// Guarantees: they alone are lost, and counted; all else arrives, in requests that are not larger.
func TestAnItemThatIsLargerThanABatchIsLostByItself(t *testing.T) {
	const most = 2000
	r := newRig(t, func(c *Config) {
		c.Queue.Get().Batch = configoptional.Some(exporterhelper.BatchConfig{FlushTimeout: time.Millisecond, Sizer: exporterhelper.RequestSizerTypeBytes, MaxSize: most})
	})
	require.NoError(t, r.ConsumeMetrics(t.Context(), ofAllTypes(10, most, 1500, 900, 3*most, 20)))
	r.arrive(map[string]int{"a": 5 * 4})
	for _, md := range r.to[toTenants].taken["a"] {
		assert.LessOrEqual(t, metricsSignal.bytes(md), most)
	}
	assert.Equal(t, map[string]int64{"a/too_large": 5 * 2}, r.counted("otelcol_tenant_routing_items_dropped", "tenant", "reason"))
	require.NoError(t, r.ConsumeMetrics(t.Context(), ofAllTypes(most)), "nothing of it is left")
	assert.Equal(t, map[string]int64{"a/too_large": 5 * 3}, r.counted("otelcol_tenant_routing_items_dropped", "tenant", "reason"))
}

// Guarantees: the queue finds room for whatever was left to it, however close to the bound.
func TestWhatIsLeftToAQueueIsSent(t *testing.T) {
	const most, sizes = 500, 200
	r := newRig(t, func(c *Config) {
		c.Queue.Get().Batch = configoptional.Some(exporterhelper.BatchConfig{FlushTimeout: time.Millisecond, Sizer: exporterhelper.RequestSizerTypeBytes, MaxSize: most})
	})
	for n := range sizes {
		require.NoError(t, r.ConsumeMetrics(t.Context(), ofAllTypes(most-n, 1)))
	}
	lost := int(r.counted("otelcol_tenant_routing_items_dropped", "tenant", "reason")["a/too_large"])
	assert.Positive(t, lost)
	assert.Less(t, lost, 5*sizes)
	r.arrive(map[string]int{"a": 5*2*sizes - lost})
}

// Guarantees: an item stays if and only if a request of it alone is not larger than it may be, give or take some bytes.
func TestWhatFitsStays(t *testing.T) {
	const most = 1000
	for n := range 2 * most {
		text := strings.Repeat("x", n)
		ld := plog.NewLogs()
		rl := ld.ResourceLogs().AppendEmpty()
		rl.Resource().Attributes().PutStr("service.name", "chat")
		sl := rl.ScopeLogs().AppendEmpty()
		sl.Scope().SetName("scope")
		sl.LogRecords().AppendEmpty().Body().SetStr(text)
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", "chat")
		rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName(text)
		for _, of := range [][2]int{{logsSignal.bytes(ld), logsSignal.fit(ld, most)}, {tracesSignal.bytes(td), tracesSignal.fit(td, most)}} {
			size, removed := of[0], of[1]
			if removed == 0 {
				require.LessOrEqual(t, size, most)
			} else {
				require.Greater(t, size, most-2*lengths)
			}
		}
	}
}
