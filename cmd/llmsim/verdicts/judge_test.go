// SPDX-License-Identifier: Apache-2.0

package verdicts

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/connector/sloconnector"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// verdict is what the connector has said of a promise's window.
type verdict struct {
	state               string
	value, lower, upper float64
}

// window is a promise and the end of a window.
type window struct {
	slo string // slo_id
	end time.Time
}

// told is all that the connector says.
type told struct {
	verdicts map[window]verdict
	events   map[string]map[time.Time]float64 // slo.sli.events, both outcomes, by slo_id and time
	good     map[string]float64               // the newest
	changed  []string                         // verdicts that were told one way and then another
	log      []string                         // violations
}

// judge is the connector with both its outputs: an instance for each pair of signals, as a Collector has them.
type judge struct {
	scrapes []connector.Metrics
	spans   []connector.Traces
	catalog *openslo.Catalog
	told    *told
}

// host is a Collector that runs one slo_catalog.
type host struct {
	component.Host
	catalog *openslo.Catalog
}

func (h *host) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{component.MustNewID("slo_catalog"): h}
}
func (*host) Start(context.Context, component.Host) error { return nil }
func (*host) Shutdown(context.Context) error              { return nil }
func (h *host) Catalog() *openslo.Catalog                 { return h.catalog }

func startJudge(t *testing.T) *judge {
	data, err := os.ReadFile("testdata/slo.yaml")
	require.NoError(t, err)
	catalog, err := openslo.Parse(openslo.Source{Name: "slo.yaml", Data: data})
	require.NoError(t, err)
	j := &judge{catalog: catalog, told: &told{
		verdicts: map[window]verdict{}, events: map[string]map[time.Time]float64{}, good: map[string]float64{}}}
	metrics, err := consumer.NewMetrics(j.told.metrics)
	require.NoError(t, err)
	logs, err := consumer.NewLogs(j.told.logs)
	require.NoError(t, err)

	f := sloconnector.NewFactory()
	cfg, set := f.CreateDefaultConfig(), connectortest.NewNopSettings(f.Type())
	scrapesToMetrics, err := f.CreateMetricsToMetrics(t.Context(), set, cfg, metrics)
	require.NoError(t, err)
	scrapesToLogs, err := f.CreateMetricsToLogs(t.Context(), set, cfg, logs)
	require.NoError(t, err)
	spansToMetrics, err := f.CreateTracesToMetrics(t.Context(), set, cfg, metrics)
	require.NoError(t, err)
	spansToLogs, err := f.CreateTracesToLogs(t.Context(), set, cfg, logs)
	require.NoError(t, err)
	j.scrapes = []connector.Metrics{scrapesToMetrics, scrapesToLogs}
	j.spans = []connector.Traces{spansToMetrics, spansToLogs}
	h := &host{Host: componenttest.NewNopHost(), catalog: catalog}
	for _, c := range j.instances() {
		require.NoError(t, c.Start(t.Context(), h))
	}
	return j
}

func (j *judge) instances() []component.Component {
	return []component.Component{j.scrapes[0], j.scrapes[1], j.spans[0], j.spans[1]}
}

// scraped hands a batch to all instances that take metrics, as a Collector does.
func (j *judge) scraped(md pmetric.Metrics) (err error) {
	md.MarkReadOnly()
	for _, c := range j.scrapes {
		err = errors.Join(err, c.ConsumeMetrics(context.Background(), md))
	}
	return err
}

// received does so with spans.
func (j *judge) received(td ptrace.Traces) (err error) {
	td.MarkReadOnly()
	for _, c := range j.spans {
		err = errors.Join(err, c.ConsumeTraces(context.Background(), td))
	}
	return err
}

func (j *judge) stop(t *testing.T) {
	for _, c := range j.instances() {
		require.NoError(t, c.Shutdown(context.Background()))
	}
}

func (t *told) metrics(_ context.Context, md pmetric.Metrics) error {
	batch := map[window]verdict{}
	events := map[window]float64{}
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				switch m.Name() {
				case "slo.state", "slo.sli.value", "slo.sli.bound":
					for _, p := range m.Gauge().DataPoints().All() {
						w := windowOf(p)
						if !w.end.Truncate(evaluation).Equal(w.end) {
							continue // the verdict before, repeated
						}
						v, ok := batch[w]
						if !ok {
							v = verdict{value: math.NaN(), lower: math.NaN(), upper: math.NaN()}
						}
						v.take(m.Name(), p)
						batch[w] = v
					}
				case "slo.sli.events":
					for _, p := range m.Sum().DataPoints().All() {
						w := windowOf(p)
						events[w] += number(p)
						if attribute(p, "outcome") == "good" {
							t.good[w.slo] = number(p)
						}
					}
				}
			}
		}
	}
	for w, n := range events {
		if t.events[w.slo] == nil {
			t.events[w.slo] = map[time.Time]float64{}
		}
		t.events[w.slo][w.end] = n
	}
	for w, v := range batch {
		if was, known := t.verdicts[w]; known && fmt.Sprint(was) != fmt.Sprint(v) {
			t.changed = append(t.changed, fmt.Sprintf("%s, window to %s: %v, then %v", w.slo, w.end, was, v))
		}
		t.verdicts[w] = v
	}
	return nil
}

func (v *verdict) take(metric string, p pmetric.NumberDataPoint) {
	switch n := number(p); {
	case metric == "slo.sli.value":
		v.value = n
	case metric == "slo.sli.bound" && attribute(p, "bound") == "lower":
		v.lower = n
	case metric == "slo.sli.bound":
		v.upper = n
	case n == 1:
		v.state = attribute(p, "state")
	}
}

func windowOf(p pmetric.NumberDataPoint) window {
	return window{attribute(p, "slo_id"), p.Timestamp().AsTime()}
}

func attribute(p pmetric.NumberDataPoint, key string) string { return text(p.Attributes(), key) }

func number(p pmetric.NumberDataPoint) float64 {
	if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
		return float64(p.IntValue())
	}
	return p.DoubleValue()
}

func text(m pcommon.Map, key string) string {
	v, _ := m.Get(key)
	return v.Str()
}

func (t *told) logs(_ context.Context, ld plog.Logs) error {
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, r := range sl.LogRecords().All() {
				of := text(r.Attributes(), "slo.policy")
				if of == "" { // a burn rate that is of no AlertPolicy
					of = text(r.Attributes(), "slo_id")
				}
				t.log = append(t.log, fmt.Sprintf("%s  %s %s: %s", timeOfDay(r.Timestamp().AsTime()), r.EventName(), of, r.Body().Str()))
			}
		}
	}
	return nil
}

func timeOfDay(at time.Time) string { return at.UTC().Format("15:04:05") }
