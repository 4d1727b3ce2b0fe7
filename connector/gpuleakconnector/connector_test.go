// SPDX-License-Identifier: Apache-2.0

package gpuleakconnector

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/connector/gpuleakconnector/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/doctest"
	"github.com/otelcol-llm/otelcol-llm/internal/lifecycletest"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// Scenario: a server leaks 1 % an hour. Guarantees: states, rates and the event look as the contract says.
func TestALeakLooksAsTheContractSays(t *testing.T) {
	r := newRig(t, nil)
	r.run(0, 4)
	of := map[string]any{
		"hw.id": "GPU-0", "process.pid": int64(71), "process.executable.name": "python3", "host.name": "node-1", "k8s.namespace.name": "team-a", "tenant": "team-a",
	}
	value := func(name string, attributes ...string) float64 {
		t.Helper()
		p, ok := r.last(name, append(attributes, "process.pid", "71")...)
		require.True(t, ok, name)
		got := p.Attributes().AsRaw()
		for i := 0; i < len(attributes); i += 2 {
			delete(got, attributes[i])
		}
		assert.Equal(t, of, got)
		if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
			return float64(p.IntValue())
		}
		return p.DoubleValue()
	}
	for state, want := range map[string]float64{"ok": 0, "suspect": 0, "leaking": 1, "plateau": 0} {
		assert.InDelta(t, want, value("gpu.leak.state", "state", state), 0, state)
	}
	assert.InEpsilon(t, 0.4*gib/3600, value("gpu.leak.rate"), 0.01)
	assert.InEpsilon(t, (39-0.4*4)/0.4*3600, value("gpu.leak.time_to_exhaustion"), 0.02)
	assert.InEpsilon(t, 40*1.035*gib/8, value("gpu.memory.per_request"), 0.01)
	assert.InEpsilon(t, 40*1.005*gib/8, value("gpu.memory.per_request.first_hour"), 0.01)
	assert.InDelta(t, 1, value("gpu.leak.cause", "cause", "not_returned"), 0)
	_, bounds := r.last("gpu.leak.rate.bound")
	assert.False(t, bounds, "off by default")
	state, ok := r.last("gpu.leak.state", "hw.id", "GPU-0", "state", "ok")
	require.True(t, ok)
	_, isProcess := state.Attributes().Get("process.pid")
	assert.True(t, isProcess, "the device tells of itself first, and the process after it")
	resource := r.metrics.AllMetrics()[0].ResourceMetrics().At(0).Resource().Attributes().AsRaw()
	assert.Equal(t, map[string]any{"tenant": "team-a", "k8s.namespace.name": "team-a", "service.instance.id": "collector-1"}, resource)

	require.Len(t, r.records(), 1)
	record := r.records()[0]
	assert.Equal(t, "gpu.leak.opened", record.EventName())
	assert.Equal(t, "ERROR", record.SeverityText())
	assert.InDelta(t, 3.3, record.Timestamp().AsTime().Sub(t0).Hours(), 0.2)
	assert.Regexp(t, `^process 71 \(python3\) on node-1 leaks 41\d MiB an hour`, record.Body().Str())
	got := record.Attributes().AsRaw()
	for key, v := range of {
		assert.Equal(t, v, got[key], key)
	}
	assert.Len(t, got["gpu.leak.id"], 24)
	assert.Equal(t, "not_returned", got["gpu.leak.cause"])
	assert.Contains(t, got["gpu.leak.verify"], "nvidia-smi --id=GPU-0")
	assert.InEpsilon(t, 0.4*gib/3600, got["gpu.leak.per_served_request"], 0.02, "one request a second")

	for h := 4.0; h < 4.5; h += 1.0 / 120 {
		r.send(newScrape(t0.Add(time.Duration(h*float64(time.Hour)))).put("hw.gpu.memory.limit", 80*gib, "hw.id", "GPU-0").Metrics)
	}
	require.Len(t, r.records(), 2)
	assert.Equal(t, "gpu.leak.closed", r.records()[1].EventName())
	assert.Equal(t, got["gpu.leak.id"], r.records()[1].Attributes().AsRaw()["gpu.leak.id"])
	gone, ok := r.last("gpu.leak.state", "process.pid", "71", "state", "leaking")
	require.True(t, ok)
	assert.True(t, gone.Flags().NoRecordedValue())
}

// Scenario: only what a process allocates is told, and calls are missed for an hour; once they are not any more, it is judged; then calls are missed again. Guarantees: there is no state while
// it is not judged, and why is told instead, each as long as it holds.
func TestThereIsNoStateWhereThereIsNoVerdict(t *testing.T) {
	r := newRig(t, nil)
	missed := 0.0
	for tick := range 7 * 60 {
		h := float64(tick) / 60
		if h < 1 || h > 6.5 {
			missed++
		}
		r.send(newScrape(t0.Add(time.Duration(tick)*time.Minute)).put("cuda.memory.live", 20*gib, "process.pid", 71).put("cuda.memory.missed", missed, "process.pid", 71).Metrics)
		state, hasState := r.last("gpu.leak.state", "state", "ok")
		why, hasReason := r.last("gpu.leak.unjudged", "reason", "calls_missed")
		told := hasState && !state.Flags().NoRecordedValue()
		switch {
		case h < 3.9:
			assert.False(t, hasState, "%v h", h)
			assert.True(t, h < 0.1 || hasReason && why.DoubleValue() == 1, "%v h", h)
		case h > 4.2 && h < 6.4:
			assert.True(t, told, "%v h", h)
			assert.True(t, hasReason && why.Flags().NoRecordedValue(), "%v h", h)
		case h > 6.7:
			assert.False(t, told, "%v h", h)
			assert.InDelta(t, 1, why.DoubleValue(), 0)
		}
	}
}

func TestWhatCannotBeUsedIsCounted(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Traffic.Relation = nil })
	at := t0.Add(23 * time.Hour)
	send := func(s scrape) { r.send(s.Metrics) }
	send(newScrape(at).put("cuda.memory.live", 5, "process.pid", 1).put("cpu", 1))
	send(newScrape(at).put("cuda.memory.live", -1, "process.pid", 1))
	send(newScrape(at).put("cuda.memory.live", -2, "process.pid", 1))
	send(newScrape(at).put("cuda.memory.live", math.NaN(), "process.pid", 1))
	send(newScrape(at).put("nvidia.gpu.process.memory.usage", 1<<64, "process.pid", 1))
	send(newScrape(at).put("cuda.memory.live", 1, "hw.id", "GPU-0"))
	send(newScrape(at).gauge("vllm:num_requests_running", 1))
	send(newScrape(at.Add(2*time.Hour)).put("cuda.memory.live", 1, "process.pid", 1))
	send(newScrape(time.Unix(0, 0)).put("cuda.memory.live", 1, "process.pid", 1))
	send(newScrape(at).put("vllm:request_success_total", 1, "process.pid", 1))
	send(newScrape(at).put("vllm:request_success_total", 1, "process.pid", 1))
	s := newScrape(at)
	m := s.sm.Metrics().AppendEmpty()
	m.SetName("cuda.memory.live")
	m.SetEmptyHistogram().DataPoints().AppendEmpty()
	send(s)
	for range 2 {
		s := newScrape(at)
		m := s.sm.Metrics().AppendEmpty()
		m.SetName("vllm:request_success_total")
		m.SetEmptySum().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		fill(m.Sum().DataPoints().AppendEmpty(), at, 1, []any{"process.pid", 2})
		send(s)
	}
	assert.Equal(t, map[string]int64{
		"sentinel": 1, "negative": 1, "not_finite": 1, "implausible": 1, "excluded": 2, "future": 1, "no_timestamp": 1, "baseline": 1, "stale": 1,
		"unsupported_shape": 1, "duplicate": 1,
	}, r.counted("points_refused"))
	assert.Equal(t, map[string]int64{"": 2}, r.counted("points_accepted"))
	send(newScrape(at.Add(30*time.Minute)).put("cuda.memory.live", 5, "process.pid", 1))
	send(newScrape(at).put("cuda.memory.live", 5, "process.pid", 1))
	assert.Equal(t, int64(1), r.counted("points_refused")["late"])
}

// Scenario: two hosts leak, and the clock of one is ten minutes behind. Guarantees: with a lateness above that, each is told, in its own time; below it, what the one says is
// late, all but the first of it is counted so, and the other is told all the same.
func TestAHostWhoseClockIsBehindIsToldOrCounted(t *testing.T) {
	f := func(lateness time.Duration, late int64, want map[any]float64) {
		t.Helper()
		r := newRig(t, func(c *Config) { c.Lateness = lateness })
		for tick := range 4 * 120 {
			h := float64(tick) / 120
			r.clock = t0.Add(time.Duration(tick) * 30 * time.Second)
			r.send(leaking(h).Metrics)
			s := newScrape(r.clock.Add(-10*time.Minute)).put("nvidia.gpu.process.memory.usage", 40*gib*(1+0.01*h), "hw.id", "GPU-9", "process.pid", 71)
			s.ResourceMetrics().At(0).Resource().Attributes().PutStr("host.name", "node-2")
			r.send(s.Metrics)
		}
		require.Len(t, r.records(), len(want))
		for _, record := range r.records() {
			assert.InDelta(t, want[record.Attributes().AsRaw()["host.name"]], record.Timestamp().AsTime().Sub(t0).Hours(), 0.2)
		}
		assert.Equal(t, late, r.counted("points_refused")["late"])
	}
	f(11*time.Minute, 0, map[any]float64{"node-1": 3.3, "node-2": 3.3 - 1.0/6})
	f(30*time.Second, 479, map[any]float64{"node-1": 3.3})
}

// known is a catalog.
type known struct{ slos *openslo.Catalog }

func (k known) Catalog() *openslo.Catalog { return k.slos }

// Scenario: 8 requests run, of which each takes 5 GiB, and 8 GiB are promised; 0.4 GiB an hour leak. Guarantees: the event says that this
// promise breaks in some 60 hours, and that of the service when nothing is left; others' promises are not named.
func TestALeakNamesThePromisesThatItWillBreak(t *testing.T) {
	var docs string
	for _, block := range doctest.Blocks(t) {
		if strings.Contains(block, "kind: SLO") {
			docs = block
		}
	}
	for _, service := range []string{"chat", "other"} {
		docs += "---\n" + strings.NewReplacer("name: chat-memory", "name: "+service+"-ttft", "llm:chat:memory:request", "llm:"+service+":ttft:p95", "class: cost", "class: latency",
			"service: chat", "service: "+service, "gpu.memory.per_request, unit: bytes", "ttft, unit: s", "8589934592", "0.8").Replace(docs[:strings.Index(docs+"---", "---")])
	}
	slos, err := openslo.Parse(openslo.Source{Name: "slo.yaml", Data: []byte(docs)})
	require.NoError(t, err)
	r := newRig(t, nil)
	r.source = known{slos}
	for tick := range 4 * 120 {
		s := leaking(float64(tick) / 120)
		s.ResourceMetrics().At(0).Resource().Attributes().PutStr("service.name", "chat")
		r.send(s.Metrics)
	}
	require.Len(t, r.records(), 1)
	got := r.records()[0].Attributes().AsRaw()
	assert.Equal(t, []any{"llm:chat:memory:request", "llm:chat:ttft:p95"}, got["slo.ids"])
	within := got["gpu.leak.slo_breaks_in"].([]any)
	assert.InEpsilon(t, (64-41.3)/0.4*3600, within[0], 0.02)
	assert.InEpsilon(t, (79-41.3)/0.4*3600, within[1], 0.02)
	assert.Equal(t, []any{"memory_per_request", "exhaustion"}, got["gpu.leak.slo_breaks_by"])
	assert.Contains(t, r.records()[0].Body().Str(), "; it will break llm:chat:memory:request in 5")
	for id, left := range map[string]float64{"llm:chat:memory:request": 64, "llm:chat:ttft:p95": 79} {
		breaks, ok := r.last("gpu.leak.slo.breaks_in", "slo_id", id)
		require.True(t, ok, id)
		assert.InEpsilon(t, (left-41.6)/0.4*3600, breaks.DoubleValue(), 0.03, "it is nearer now, at the end of four hours")
	}
	_, other := r.last("gpu.leak.slo.breaks_in", "slo_id", "llm:other:ttft:p95")
	assert.False(t, other)

	// Scenario: the slo connector tells besides that the latency promise burns at 28 with half of its budget left. Guarantees: it breaks by that.
	r = newRig(t, func(c *Config) { id := component.MustNewID("slo_catalog"); c.Catalog = &id })
	r.source = known{slos}
	for tick := range 4 * 120 {
		s := leaking(float64(tick) / 120)
		s.ResourceMetrics().At(0).Resource().Attributes().PutStr("service.name", "chat")
		for _, group := range []string{"acme", "umbrella"} {
			of := []any{"slo_id", "llm:chat:ttft:p95", "service", "chat", "slo_class", "latency", "target", "0.8000", "unit", "seconds", "tenant", group}
			burn := map[string]float64{"acme": 28, "umbrella": 0.2}[group]
			s.gauge("slo.burn_rate", burn, append(of, "window", "1h")...).gauge("slo.burn_rate", 90, append(of, "window", "5m")...)
			s.gauge("slo.error_budget.remaining", map[string]float64{"acme": 0.5, "umbrella": 1}[group], of...)
		}
		r.send(s.Metrics)
	}
	require.Len(t, r.records(), 1)
	got = r.records()[0].Attributes().AsRaw()
	assert.Equal(t, []any{"llm:chat:ttft:p95", "llm:chat:memory:request"}, got["slo.ids"])
	assert.InDelta(t, 12*3600, got["gpu.leak.slo_breaks_in"].([]any)[0], 1e-6)
	assert.Equal(t, []any{"burn_rate", "memory_per_request"}, got["gpu.leak.slo_breaks_by"])
	assert.Contains(t, r.records()[0].Body().Str(), "; llm:chat:ttft:p95 breaks in 12 hours at the present burn rate, and 1 more")
}

// Scenario: an application says what it makes, once more after a request that was accepted in part.
func TestWhatApplicationsSayOfTheirObjectsIsHeardOnce(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Traffic.Relation = nil })
	at := t0.Add(23 * time.Hour)
	say := func(event, what string, pid any, when time.Time) {
		ld := plog.NewLogs()
		rl := ld.ResourceLogs().AppendEmpty()
		rl.Resource().Attributes().PutStr("host.name", "node-1")
		record := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
		record.SetEventName(event)
		record.SetTimestamp(pcommon.NewTimestampFromTime(when))
		record.Attributes().PutStr("gpu.memory.object", what)
		if pid != nil {
			require.NoError(t, record.Attributes().PutEmpty("process.pid").FromRaw(pid))
		}
		ld.MarkReadOnly()
		r.consumeLogs(t.Context(), ld)
	}
	for range 2 {
		say("gpu.memory.object.created", "context", 71, at)
	}
	say("gpu.memory.object.destroyed", "context", 71, at.Add(time.Second))
	say("gpu.memory.object.created", "window", 71, at)
	say("gpu.memory.object.created", "context", nil, at)
	say("gpu.memory.object.created", "context", 71, at.Add(2*time.Hour))
	say("gpu.memory.object.created", "context", 71, time.Unix(0, 0))
	say("something else", "context", 71, at)
	assert.Equal(t, map[string]int64{"duplicate": 1, "no_value": 1, "excluded": 1, "future": 1, "no_timestamp": 1}, r.counted("points_refused"))
	assert.Equal(t, map[string]int64{"": 2}, r.counted("points_accepted"))
	say("gpu.memory.object.created", "engine", 71, at.Add(30*time.Minute))
	say("gpu.memory.object.created", "context", 71, at)
	assert.Equal(t, int64(1), r.counted("points_refused")["late"])
	assert.Len(t, r.said, 1, "only what is not late can come twice")
}

// Guarantees: a crash between two checkpoints loses neither the leak that is open nor what memory did before.
func TestALeakOutlivesTheProcess(t *testing.T) {
	d := &disk{values: map[string][]byte{}}
	store := func(c *Config) { c.Storage = &diskID }
	before := newRigOn(t, on{componenttest.NewNopHost(), d}, store)
	before.run(0, 3)
	require.Empty(t, before.records())
	before.keeper.Save(t.Context())
	after := newRigOn(t, on{componenttest.NewNopHost(), d}, store)
	after.run(3, 4)
	require.Len(t, after.records(), 1)
	after.keeper.Save(t.Context())

	whole := newRig(t, nil)
	whole.run(0, 4)
	assert.Equal(t, whole.records()[0].Attributes().AsRaw(), after.records()[0].Attributes().AsRaw())

	last := newRigOn(t, on{componenttest.NewNopHost(), d}, store)
	last.run(4, 4.5)
	assert.Empty(t, last.records(), "it is open already")
	p, ok := last.last("gpu.leak.state", "state", "leaking", "process.pid", "71")
	require.True(t, ok)
	assert.Equal(t, int64(1), p.IntValue())

	for key := range d.values {
		d.values[key] = []byte("damaged")
	}
	empty := newRigOn(t, on{componenttest.NewNopHost(), d}, store)
	assert.Zero(t, empty.fleet.Len())
	assert.Positive(t, empty.counted("checkpoints_damaged")[""])
}

// Guarantees: nothing is lost to a consumer that refuses for a while.
func TestWhatIsRefusedIsToldAgain(t *testing.T) {
	r := newRig(t, nil)
	refusing := consumertest.NewErr(errors.New("not now"))
	r.out.Metrics, r.out.Logs = refusing, refusing
	r.run(0, 4)
	require.Len(t, r.events, 1)
	require.Positive(t, r.outbox.Len())
	r.out.Metrics, r.out.Logs = r.metrics, r.logs
	r.clock = r.clock.Add(time.Minute)
	r.publishMetrics(t.Context())
	r.publishEvents(t.Context())
	assert.Len(t, r.records(), 1)
	_, ok := r.last("gpu.leak.state", "state", "leaking")
	assert.True(t, ok)
	assert.Empty(t, r.events)
}

func TestLifecycle(t *testing.T) {
	lifecycletest.Test(t, componenttest.NewNopHost(), func(t testing.TB) connector.Metrics {
		c, err := NewFactory().CreateMetricsToMetrics(t.Context(), connectortest.NewNopSettings(metadata.Type), createDefaultConfig(), new(consumertest.MetricsSink))
		require.NoError(t, err)
		return c
	}, func(t testing.TB, c connector.Metrics) {
		md := leaking(0).Metrics
		md.MarkReadOnly()
		require.NoError(t, c.ConsumeMetrics(t.Context(), md))
	})
}

// Guarantees: the instances to metrics and to logs share one engine, which hears each batch once.
func TestBothOutputsShareOneEngine(t *testing.T) {
	f, set, cfg := NewFactory(), connectortest.NewNopSettings(metadata.Type), defaults()
	m, err := f.CreateMetricsToMetrics(t.Context(), set, cfg, new(consumertest.MetricsSink))
	require.NoError(t, err)
	l, err := f.CreateMetricsToLogs(t.Context(), set, cfg, new(consumertest.LogsSink))
	require.NoError(t, err)
	for _, c := range []connector.Metrics{m, l} {
		require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
	}
	e := m.(*instance).Engine()
	assert.Same(t, e, l.(*instance).Engine())
	for _, c := range []connector.Metrics{m, l} {
		require.NoError(t, c.ConsumeMetrics(t.Context(), newScrape(time.Now()).put("cuda.memory.live", 1, "process.pid", 1).Metrics))
	}
	e.mu.Lock()
	assert.Equal(t, 1, e.fleet.Pending())
	e.mu.Unlock()
	for _, c := range []connector.Metrics{m, l} {
		require.NoError(t, c.Shutdown(t.Context()))
	}
}
