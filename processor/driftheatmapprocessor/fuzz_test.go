// SPDX-License-Identifier: Apache-2.0

package driftheatmapprocessor

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// fuzzDocs promise something of everything: a threshold, a ratio, a rate, spans and log records.
var fuzzDocs = promise(0.8) +
	"---\n" + sloOf("errors", "llm:chat:errors:x", `ratioMetric: {counter: true, bad: {metricSource: {type: opentelemetry, spec: {metric: part}}}, total: {metricSource: {type: opentelemetry, spec: {metric: requests}}}}`, "{target: 0.95}") +
	"---\n" + sloOf("raw", "llm:chat:raw:x", `ratioMetric: {rawType: success, raw: {metricSource: {type: opentelemetry, spec: {metric: raw}}}}`, "{target: 0.95}") +
	"---\n" + sloOf("tokens", "llm:chat:tokens:x", `thresholdMetric: {metricSource: {type: opentelemetry, spec: {metric: tokens, rate: 7s, unit: tokens}}}`, "{op: gte, value: 80, target: 0.95}") +
	"---\n" + sloOf("spans", "llm:chat:spans:x", `thresholdMetric: {metricSource: {type: opentelemetry, spec: {signal: traces, value: 'span.attributes["ttft"]', unit: s}}}`, "{op: lte, value: 0.8, target: 0.95}") +
	"---\n" + sloOf("scores", "llm:chat:scores:x", `thresholdMetric: {metricSource: {type: opentelemetry, spec: {signal: logs, value: 'log.attributes["score"]', unit: ratio}}}`, "{op: gte, value: 0.5, target: 0.95}")

var fuzzNames = []string{ttft, "requests", "part", "raw", "tokens"}

// sensitive concludes from next to nothing, so that all that can be concluded is.
func sensitive(c *Config) {
	withCanary(c)
	c.Dimensions = append(c.Dimensions, Dimension{Key: "batch", Buckets: []float64{1, 8}})
	c.MinSamples, c.Window, c.IdleTimeout, c.MaxCells = 1, 10*time.Second, time.Second, 20
	c.Canary.Get().MinSamples = 20
	withCoupling(c)
	*c.Coupling.Get() = CouplingConfig{
		Throughput: "tokens", Batch: "requests", Context: ttft, CacheHits: "part", CacheQueries: "raw", By: []string{"cloud.region"},
		ContextBuckets: []float64{1}, HitBuckets: []float64{0.5},
	}
}

// outcomes is how many items were accepted or refused.
func (r *rig) outcomes() (n int) {
	for reason, refused := range r.counted("points_refused") {
		require.NotEmpty(r.t, reason)
		n += int(refused)
	}
	return n + int(r.counted("points_accepted")[""])
}

// survives checks that each item was accepted or refused, and at most once more by coupling, and that what the engine knows can be
// written and taken up, whatever it has heard, and comes out the same.
func (r *rig) survives(d *disk, items int) {
	r.t.Helper()
	r.wait(time.Hour)
	require.GreaterOrEqual(r.t, r.outcomes(), items)
	require.LessOrEqual(r.t, r.outcomes(), 2*items)
	r.save(r.t.Context())
	again := on(r.t, d, fuzzDocs, sensitive)
	require.True(r.t, again.known)
	require.Equal(r.t, r.heat.Len(), again.heat.Len())
	require.Equal(r.t, r.coupled.curves.Len(), again.coupled.curves.Len())
	tell := func(r *rig) string {
		r.metrics.Reset()
		r.cfg.RefreshInterval = time.Nanosecond
		r.publish(r.t.Context())
		return fmt.Sprint(r.told())
	}
	require.Equal(r.t, tell(r), tell(again))
	again.wait(24 * time.Hour)
}

// FuzzConsume feeds whatever decodes as OTLP metrics to SLOs of every kind, in two batches, the first of which is sent again.
func FuzzConsume(f *testing.F) {
	m := &pmetric.ProtoMarshaler{}
	for i := range 5 {
		md := windowOf(0, cell{map[string]any{"model.version": "v1", "cloud.region": "eu"}, []float64{0.1, 0.2, 0.3}},
			cell{map[string]any{"model.version": "v2", "cloud.region": "eu", "batch": 2}, []float64{0.3}})
		if i > 2 {
			md = constants(0, 3, float64(i)-4, map[string]any{"batch": "NaN"})
		}
		data, err := m.MarshalMetrics(md)
		require.NoError(f, err)
		f.Add(data, data, uint8(i))
	}
	f.Fuzz(func(t *testing.T, first, second []byte, name uint8) {
		d, items := newDisk(), 0
		r := on(t, d, fuzzDocs, sensitive)
		uncoupled := newRig(t, fuzzDocs, func(c *Config) { sensitive(c); c.Coupling = configoptional.None[CouplingConfig]() })
		for _, data := range [][]byte{first, second, first} {
			md, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(data)
			if err != nil {
				continue // it is no OTLP
			}
			for _, rm := range md.ResourceMetrics().All() {
				for _, sm := range rm.ScopeMetrics().All() {
					for _, m := range sm.Metrics().All() {
						m.SetName(fuzzNames[int(name)%len(fuzzNames)])
					}
				}
			}
			items += md.DataPointCount()
			r.send(md)
			uncoupled.send(md)
		}
		require.Equal(t, items, uncoupled.outcomes(), "each item is accepted or refused, exactly once")
		r.survives(d, items)
	})
}

// FuzzConsumeRequests feeds whatever decodes as OTLP spans and log records.
func FuzzConsumeRequests(f *testing.F) {
	for i, v := range []float64{0.5, -1, math.Inf(1), math.MaxFloat64} {
		td, ld := ptrace.NewTraces(), plog.NewLogs()
		s := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		s.SetSpanID([8]byte{1, byte(i)})
		s.SetEndTimestamp(pcommon.NewTimestampFromTime(t0))
		s.Attributes().PutDouble("ttft", v)
		l := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
		l.SetTimestamp(pcommon.NewTimestampFromTime(t0))
		l.Attributes().PutDouble("score", v)
		spans, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
		require.NoError(f, err)
		records, err := (&plog.ProtoMarshaler{}).MarshalLogs(ld)
		require.NoError(f, err)
		f.Add(spans, records)
	}
	f.Fuzz(func(t *testing.T, spans, records []byte) {
		d, items := newDisk(), 0
		r := on(t, d, fuzzDocs, sensitive)
		for range 2 {
			if td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(spans); err == nil {
				items += td.SpanCount()
				r.consumeTraces(t.Context(), td)
			}
			if ld, err := (&plog.ProtoUnmarshaler{}).UnmarshalLogs(records); err == nil {
				items += ld.LogRecordCount()
				r.consumeLogs(t.Context(), ld)
			}
		}
		require.Equal(t, items, r.outcomes(), "each item is accepted or refused, exactly once")
		r.survives(d, items)
	})
}
