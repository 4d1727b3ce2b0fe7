// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-llm/otelcol-llm/connector/sloconnector/internal/judge"
	"github.com/otelcol-llm/otelcol-llm/connector/sloconnector/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/frame"
)

// disk is a storage extension in memory. It outlives those that use it.
type disk struct {
	component.Component
	values map[string][]byte
	broken error // of everything that is written
}

func (d *disk) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return d, nil
}

func (d *disk) Get(_ context.Context, key string) ([]byte, error) { return d.values[key], nil }
func (d *disk) Set(ctx context.Context, key string, value []byte) error {
	return d.Batch(ctx, storage.SetOperation(key, value))
}
func (d *disk) Delete(ctx context.Context, key string) error {
	return d.Batch(ctx, storage.DeleteOperation(key))
}
func (*disk) Close(context.Context) error { return nil }

func (d *disk) Batch(_ context.Context, ops ...*storage.Operation) error {
	for _, op := range ops {
		switch {
		case op.Type == storage.Get:
			op.Value = d.values[op.Key]
		case d.broken != nil:
			return d.broken
		case op.Type == storage.Set:
			d.values[op.Key] = slices.Clone(op.Value)
		default:
			delete(d.values, op.Key)
		}
	}
	return nil
}

var diskID = component.MustNewID("file_storage")

func newDisk() *disk { return &disk{values: map[string][]byte{}} }

// on makes an engine that has taken up what stands in a storage.
func on(t testing.TB, ext component.Component, docs string, configure func(*Config)) *rig {
	t.Helper()
	h := newHost(t, docs)
	h.others = map[component.ID]component.Component{diskID: ext}
	return newRigOn(t, h, func(c *Config) {
		c.Storage = &diskID
		if configure != nil {
			configure(c)
		}
	})
}

// checkpoint is what the next checkpoint would write.
func (r *rig) checkpoint() map[string][]byte {
	r.t.Helper()
	taken := r.Take()
	parts, err := frame.Encode(taken)
	require.NoError(r.t, err)
	return parts
}

// stop ends an engine as a kill -9 does after its last checkpoint.
func (r *rig) stop() {
	r.t.Helper()
	r.save(r.t.Context())
	require.NoError(r.t, r.keeper.Close(r.t.Context()))
}

// settle writes a checkpoint, after which counters are told as they are.
func (r *rig) settle() {
	r.t.Helper()
	r.save(r.t.Context())
	r.publish()
}

// ids are the ids of the violations that were told, with the names of their events.
func (r *rig) ids() (all []string) {
	for _, ld := range r.logs.AllLogs() {
		for _, rl := range ld.ResourceLogs().All() {
			for _, rec := range rl.ScopeLogs().At(0).LogRecords().All() {
				for _, key := range []string{"slo.violation.id", "slo.alert.id"} {
					if id, ok := rec.Attributes().Get(key); ok {
						all = append(all, rec.EventName()+" "+id.Str())
					}
				}
			}
		}
	}
	return all
}

// told is the newest value of each series of the results, but for the lag.
func (r *rig) told() map[string]float64 {
	all := map[string]float64{}
	for _, md := range r.metrics.AllMetrics() {
		for _, rm := range md.ResourceMetrics().All() {
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				if m.Name() == lag.Name || m.Name() == sliDistribution.Name {
					continue
				}
				for _, p := range numbers(m).All() {
					id := fmt.Sprint(m.Name(), p.Attributes().AsRaw())
					if p.Flags().NoRecordedValue() {
						delete(all, id)
					} else if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
						all[id] = float64(p.IntValue())
					} else {
						all[id] = p.DoubleValue()
					}
				}
			}
		}
	}
	return all
}

// cumulated is hour as a cumulative series.
func cumulated(slow ...int) []pmetric.Metrics {
	all, sum := hour(slow...), make([]uint64, len(ttftBounds)+1)
	for _, md := range all {
		h := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Histogram()
		h.SetAggregationTemporality(cumulative)
		p := h.DataPoints().At(0)
		n := uint64(0)
		for i := range sum {
			sum[i] += p.BucketCounts().At(i)
			n += sum[i]
		}
		p.BucketCounts().FromRaw(sum)
		p.SetCount(n)
		p.SetStartTimestamp(0)
	}
	return all
}

// burns lets every kind of event occur.
func burns(c *Config) {
	c.BurnRates = []BurnRate{{Long: 10 * time.Minute, Short: 5 * time.Minute, Factor: 1.5, Severity: "page"}}
}

// Scenario: the process is killed after a checkpoint, at any minute of a story, and starts again.
// Guarantees: what is told from there on is what one that was never killed tells: counters, budgets, states and ids.
func TestARestartInTheMiddleOfAStoryChangesNothing(t *testing.T) {
	f := func(name string, batches func(slow ...int) []pmetric.Metrics, docs string) {
		t.Run(name, func(t *testing.T) {
			whole := newRig(t, docs, burns)
			for _, md := range batches(4, 5, 6, 7) {
				whole.send(md)
			}
			whole.wait(2 * time.Minute)
			require.Len(t, whole.ids(), 4, "a violation and a burn rate, opened and closed")
			for _, cut := range []int{1, 14, 27, 29, 31, 36, 41, 58} {
				d := newDisk()
				r := on(t, d, docs, burns)
				require.False(t, r.known)
				var ids []string
				for i, md := range batches(4, 5, 6, 7) {
					if i == cut {
						r.stop()
						ids = r.ids()
						r = on(t, d, docs, burns)
						require.True(t, r.known)
					}
					r.send(md)
				}
				r.wait(2 * time.Minute)
				r.settle()
				assert.Equal(t, whole.ids(), append(ids, r.ids()...), "cut at %d", cut)
				assert.Equal(t, whole.told(), r.told(), "cut at %d", cut)
			}
		})
	}
	f("delta", hour, ttftDocs)
	f("cumulative", cumulated, ttftDocs)
	grouped := strings.Replace(ttftDocs, "annotations: {", "annotations: {otelcol-llm.dev/group-by: service.instance.id, ", 1)
	f("groups", cumulated, grouped)
}

func TestADeltaThatIsSentAgainAfterARestartCountsOnce(t *testing.T) {
	d := newDisk()
	r := on(t, d, ttftDocs, nil)
	for range 2 {
		r.send(hour()[0])
		r.stop()
		r = on(t, d, ttftDocs, nil)
	}
	r.send(hour()[0])
	assert.Equal(t, map[string]int64{"duplicate": 1}, r.refused())
	good, _ := r.last("slo.sli.events", map[string]string{"outcome": "good"})
	assert.InDelta(t, 100, good, 0)
}

func TestASpanThatIsSentAgainAfterARestartCountsOnce(t *testing.T) {
	d := newDisk()
	r := on(t, d, spanDocs, nil)
	r.sendTraces(requestSpan(1, t0, 0.5, 0.05))
	r.stop()
	r = on(t, d, spanDocs, nil)
	r.sendTraces(requestSpan(1, t0, 0.5, 0.05))
	r.sendTraces(requestSpan(2, t0, 0.5, 0.05))
	r.settle()
	assert.Equal(t, map[string]int64{"duplicate": 1}, r.refused())
	good, _ := r.last("slo.sli.events", map[string]string{"outcome": "good", "slo_id": "llm:chat:ttft:p95"})
	assert.InDelta(t, 2, good, 0)
}

// Scenario: nobody takes the events, and the process is killed.
// Guarantees: they are told after the restart, and by a Collector that has no pipeline for them any more they are let go.
func TestEventsThatNobodyHasTakenSurviveARestart(t *testing.T) {
	d := newDisk()
	r := on(t, d, ttftDocs, nil)
	r.out.Logs = consumertest.NewErr(errors.New("not now"))
	for _, md := range hour(1, 2, 3, 4) {
		r.send(md)
	}
	r.stop()
	without := on(t, d, ttftDocs, nil)
	without.out.Logs = nil
	without.wait(time.Second)
	assert.Empty(t, without.outbox.pending)
	r = on(t, d, ttftDocs, nil)
	r.wait(time.Second)
	assert.Equal(t, []event{{violationOpened, 15}, {violationClosed, 25}}, r.events())
}

// Scenario: a value of the newest checkpoint is damaged, then one of each, then all.
// Guarantees: the one before stands in; without any, the state begins empty, the log says what that means, and it is counted.
func TestADamagedCheckpointIsSetAside(t *testing.T) {
	d := newDisk()
	r := on(t, d, ttftDocs, nil)
	for _, md := range hour()[:3] {
		r.send(md)
		r.save(t.Context())
	}
	newest := func(values map[string][]byte, prefix string) {
		for key := range values {
			if strings.Contains(key, prefix) {
				values[key] = append([]byte("x"), values[key]...)
			}
		}
	}
	whole := maps.Clone(d.values)
	open := func(prefix string) (*rig, *observer.ObservedLogs) {
		d.values = maps.Clone(whole)
		newest(d.values, prefix)
		core, logs := observer.New(zapcore.InfoLevel)
		h := newHost(t, ttftDocs)
		h.others = map[component.ID]component.Component{diskID: d}
		return newLoggedRig(t, h, zap.New(core), func(c *Config) { c.Storage = &diskID }), logs
	}
	r, logs := open("/a")
	if !r.known {
		t.Fatalf("the other generation stands in: %v", logs.All())
	}
	r, logs = open("")
	assert.False(t, r.known)
	assert.NotZero(t, logs.FilterMessage("a checkpoint is damaged").Len(), "%v", logs.All())
	m, err := r.tel.GetMetric("otelcol_slo_checkpoints_damaged")
	require.NoError(t, err)
	assert.Positive(t, sumInt(m))
	r.send(hour()[5])
	r.settle()
	good, _ := r.last("slo.sli.events", map[string]string{"outcome": "good"})
	assert.InDelta(t, 100, good, 0, "it goes on, from nothing")
	assert.True(t, on(t, d, ttftDocs, nil).known, "and writes a checkpoint again")
}

// Scenario: what is in the checkpoint is whole, but not what this version writes.
// Guarantees: the state begins empty, and the promise is shown.
func TestACheckpointThatIsNotOursBeginsEmpty(t *testing.T) {
	d := newDisk()
	r := on(t, d, ttftDocs, nil)
	r.send(hour()[0])
	for _, part := range []string{headPart, frame.SpansPart, seriesPart + "1", frame.InputsPart + "1"} {
		d.values = map[string][]byte{}
		s := on(t, d, ttftDocs, nil)
		s.send(hour()[0])
		s.save(t.Context())
		require.NoError(t, s.keeper.Store().Save(t.Context(), map[string][]byte{part: []byte("\x82\x01nonsense")}, nil))
		s = on(t, d, ttftDocs, nil)
		assert.False(t, s.known, part)
		inputs, _ := s.intake.Sizes()
		assert.Zero(t, inputs, part)
		s.wait(time.Second)
		v, ok := s.last("slo.state", map[string]string{"state": "no_data"})
		assert.True(t, ok, part)
		assert.InDelta(t, 1, v, 0, part)
		m, err := s.tel.GetMetric("otelcol_slo_checkpoints_damaged")
		require.NoError(t, err)
		assert.Equal(t, int64(1), sumInt(m), part)
	}
}

// Scenario: between two runs the catalog is edited: the objective, the indicator, or the SLO is deleted.
func TestACatalogThatIsEditedBetweenTwoRuns(t *testing.T) {
	f := func(docs string, good, bad float64, closed string) {
		t.Helper()
		d := newDisk()
		r := on(t, d, ttftDocs, nil)
		for _, md := range hour(1, 2, 3, 4)[:19] {
			r.send(md)
		}
		require.Equal(t, []event{{violationOpened, 15}}, r.events())
		r.stop()
		r = on(t, d, docs, nil)
		require.True(t, r.known)
		r.wait(time.Second)
		g, _ := r.last("slo.sli.events", map[string]string{"outcome": "good"})
		b, _ := r.last("slo.sli.events", map[string]string{"outcome": "bad"})
		assert.Equal(t, []float64{good, bad}, []float64{g, b})
		if closed == "" {
			assert.Empty(t, r.events())
			return
		}
		require.Len(t, r.events(), 1)
		assert.Equal(t, violationClosed, r.events()[0].name)
		assert.Equal(t, closed, r.lastRecord().Body().Str())
	}
	f(ttftDocs, 1710, 190, "")
	f(strings.Replace(ttftDocs, "value: 0.8", "value: 0.5", 1), 1710, 190, "") // what is counted stays counted
	f(strings.Split(ttftDocs, "---")[0], 1710, 190, "deleted")                 // the policy
	f(strings.NewReplacer("chat-ttft", "other", "llm:chat:ttft:p95", "llm:chat:other:p95").Replace(ttftDocs), 0, 0, "deleted")
}

func TestAWrongStorageIsAnError(t *testing.T) {
	f := func(ext map[component.ID]component.Component, want string) {
		t.Helper()
		cfg := createDefaultConfig().(*Config)
		cfg.Storage = &diskID
		c, _ := instances(t, cfg, new(consumertest.MetricsSink), new(consumertest.LogsSink))
		h := newHost(t, ttftDocs)
		h.others = ext
		require.ErrorContains(t, c.Start(t.Context(), h), want)
		require.NoError(t, c.Shutdown(t.Context()))
	}
	f(nil, `storage: no extension "file_storage" is running: add it under extensions and service.extensions`)
	f(map[component.ID]component.Component{diskID: newHost(t, ttftDocs)}, `storage: extension "file_storage" keeps no state`)
}

// Scenario: the storage takes nothing for a while.
// Guarantees: it is counted, judging goes on, and the next checkpoint has what the lost one would have had.
func TestACheckpointThatFailsIsMadeUpFor(t *testing.T) {
	d := newDisk()
	r := on(t, d, ttftDocs, nil)
	r.send(hour()[0])
	d.broken = errors.New("the disk is full")
	r.save(t.Context())
	m, err := r.tel.GetMetric("otelcol_slo_checkpoints_failed")
	require.NoError(t, err)
	assert.Equal(t, int64(1), sumInt(m))
	d.broken = nil
	r.stop()
	r = on(t, d, ttftDocs, nil)
	r.wait(time.Second)
	good, _ := r.last("slo.sli.events", map[string]string{"outcome": "good"})
	assert.InDelta(t, 100, good, 0)
}

// Scenario: the whole connector with the real file_storage, twice over one file.
func TestCountersGoOnInARealFile(t *testing.T) {
	dir := t.TempDir()
	for i := range 2 {
		factory := filestorage.NewFactory()
		fc := factory.CreateDefaultConfig().(*filestorage.Config)
		fc.Directory = dir
		ext, err := factory.Create(t.Context(), extensiontest.NewNopSettings(factory.Type()), fc)
		require.NoError(t, err)
		h := newHost(t, ttftDocs)
		h.others = map[component.ID]component.Component{diskID: ext}
		require.NoError(t, ext.Start(t.Context(), h))
		cfg := createDefaultConfig().(*Config)
		cfg.Storage = &diskID
		m := new(consumertest.MetricsSink)
		set := connectortest.NewNopSettings(metadata.Type)
		set.ID = component.NewID(metadata.Type) // the name of the file
		c, err := NewFactory().CreateMetricsToMetrics(t.Context(), set, cfg, m)
		require.NoError(t, err)
		require.NoError(t, c.Start(t.Context(), h))
		require.NoError(t, c.ConsumeMetrics(t.Context(), hour()[i]))
		require.NoError(t, c.Shutdown(t.Context()))
		require.NoError(t, ext.Shutdown(t.Context()))
		good, _ := (&rig{metrics: m}).last("slo.sli.events", map[string]string{"outcome": "good"})
		assert.InDelta(t, 100*(i+1), good, 0)
	}
}

// Guarantees: a checkpoint of nothing new is small.
func TestOnlyWhatHasChangedIsWritten(t *testing.T) {
	docs := strings.Replace(ttftDocs, "annotations: {", "annotations: {otelcol-llm.dev/group-by: pod, ", 1)
	r := on(t, newDisk(), docs, nil)
	md, points := gaugeOf("vllm:time_to_first_token_seconds")
	for i := range 1000 {
		addNumber(points, time.Time{}, t0, 0.1).Attributes().PutInt("pod", int64(i))
	}
	r.send(md)
	first := r.checkpoint()
	assert.Len(t, first, 1+2*judge.Shards)
	second := r.checkpoint()
	assert.Equal(t, []string{headPart}, slices.Collect(maps.Keys(second)))
	r.sendTraces(requestSpan(1, t0, 0.1, 0.1))
	third := r.checkpoint()
	assert.Equal(t, []string{headPart}, slices.Collect(maps.Keys(third)), "no SLO is about spans")
}

// Scenario: input goes on while a checkpoint is encoded.
// Guarantees: the checkpoint is of the moment in which it was taken.
func TestACheckpointIsOfOneMoment(t *testing.T) {
	seconds := hour()[:4] // of one minute
	for i, md := range seconds {
		p := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Histogram().DataPoints().At(0)
		p.SetStartTimestamp(pcommon.NewTimestampFromTime(t0.Add(time.Duration(i) * time.Second)))
		p.SetTimestamp(pcommon.NewTimestampFromTime(t0.Add(time.Duration(i+1) * time.Second)))
	}
	for name, batches := range map[string][]pmetric.Metrics{"delta": seconds, "explicit": cumulated(), "exponential": {
		exponentialOf(cumulative, t0.Add(-time.Hour), t0.Add(time.Second), 1), exponentialOf(cumulative, t0.Add(-time.Hour), t0.Add(2*time.Second), 5),
		exponentialOf(cumulative, t0.Add(-time.Hour), t0.Add(3*time.Second), 9), exponentialOf(cumulative, t0.Add(-time.Hour), t0.Add(4*time.Second), 12),
	}} {
		r := on(t, newDisk(), ttftDocs, nil)
		for _, md := range batches[:2] {
			r.send(md)
		}
		taken := r.Take()
		before, err := frame.Encode(taken)
		require.NoError(t, err)
		for _, md := range batches[2:4] {
			r.send(md)
		}
		after, err := frame.Encode(taken)
		require.NoError(t, err)
		assert.Equal(t, before, after, name)
	}
}

// Scenario: the process is killed between two checkpoints.
// Guarantees: no counter that was told ever falls, since what a crash loses was not told.
func TestNoCounterFallsAfterACrash(t *testing.T) {
	d := newDisk()
	r := on(t, d, ttftDocs, nil)
	good := func() float64 {
		v, _ := r.last("slo.sli.events", map[string]string{"outcome": "good"})
		return v
	}
	batches := hour()
	r.send(batches[0])
	assert.Zero(t, good())
	r.settle()
	assert.InDelta(t, 100, good(), 0)
	for _, md := range batches[1:5] { // and no checkpoint
		r.send(md)
	}
	assert.InDelta(t, 100, good(), 0)
	require.NoError(t, r.keeper.Close(t.Context()))
	r = on(t, d, ttftDocs, nil)
	r.send(batches[5])
	assert.InDelta(t, 100, good(), 0)
	r.settle()
	assert.InDelta(t, 200, good(), 0, "four minutes are lost, and were never told")
}
