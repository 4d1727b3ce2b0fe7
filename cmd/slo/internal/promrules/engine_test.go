// SPDX-License-Identifier: Apache-2.0

package promrules

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// prometheus evaluates rules as the server does, with its engine and parser.
type prometheus struct {
	t       testing.TB
	engine  *promql.Engine
	storage *memory
	rules   []*rule
}

// rule is a rule with its state.
type rule struct {
	rulefmt.Rule
	series map[string]labels.Labels // recorded at the last evaluation
	since  map[string]int           // minute from which an alert has held, by model_name
	firing []string
}

// newPrometheus loads series and a rule file.
func newPrometheus(t testing.TB, series, file string) *prometheus {
	t.Helper()
	p := &prometheus{t: t, storage: loaded(t, series), engine: promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute})}
	t.Cleanup(func() { require.NoError(t, p.engine.Close()) })
	groups, errs := rulefmt.Parse([]byte(file), false, model.LegacyValidation)
	require.Empty(t, errs)
	for _, g := range groups.Groups { // SLOs stand before the policies that look at them
		for _, r := range g.Rules {
			p.rules = append(p.rules, &rule{Rule: r, series: map[string]labels.Labels{}, since: map[string]int{}})
		}
	}
	return p
}

// run evaluates every rule each minute, from one minute to another, both included.
func (p *prometheus) run(from, to int) {
	p.t.Helper()
	for minute := from; minute <= to; minute++ {
		for _, r := range p.rules {
			vector := p.vector(r.Expr, minute)
			if r.Record != "" {
				p.record(r, vector, minute)
			} else {
				p.alert(r, vector, minute)
			}
		}
	}
}

func (p *prometheus) record(r *rule, vector promql.Vector, minute int) {
	now := map[string]labels.Labels{}
	for _, s := range vector {
		b := labels.NewBuilder(s.Metric)
		b.Set(model.MetricNameLabel, r.Record)
		for k, v := range r.Labels {
			b.Set(k, v)
		}
		l := b.Labels()
		now[l.String()] = l
		p.storage.add(l, at(minute), s.F)
	}
	for key, l := range r.series {
		if _, still := now[key]; !still {
			p.storage.add(l, at(minute), math.Float64frombits(value.StaleNaN))
		}
	}
	r.series = now
}

func (*prometheus) alert(r *rule, vector promql.Vector, minute int) {
	before := r.since
	r.since, r.firing = map[string]int{}, nil
	for _, s := range vector {
		group := s.Metric.Get("model_name")
		since, held := before[group]
		if !held {
			since = minute
		}
		r.since[group] = since
		if time.Duration(minute-since)*time.Minute >= time.Duration(r.For) {
			r.firing = append(r.firing, strings.TrimSpace(r.Alert+" "+group))
		}
	}
}

func at(minute int) time.Time { return time.Unix(int64(minute)*60, 0).UTC() }

func (p *prometheus) vector(expr string, minute int) promql.Vector {
	p.t.Helper()
	q, err := p.engine.NewInstantQuery(p.t.Context(), p.storage, nil, expr, at(minute))
	require.NoError(p.t, err)
	defer q.Close()
	vector, err := q.Exec(p.t.Context()).Vector()
	require.NoError(p.t, err)
	return slices.Clone(vector)
}

// query is the value of an expression at a minute by the value of the label model_name.
func (p *prometheus) query(expr string, minute int) map[string]float64 {
	p.t.Helper()
	got := map[string]float64{}
	for _, s := range p.vector(expr, minute) {
		got[s.Metric.Get("model_name")] = s.F
	}
	return got
}

// firing are the alerts that fire, as name and model_name.
func (p *prometheus) firing() []string {
	var all []string
	for _, r := range p.rules {
		all = append(all, r.firing...)
	}
	slices.Sort(all)
	return all
}

// Scenario: one series has much traffic and is bad, another little and is good. Guarantees: the ratio is that of all
// events, 10 of 1010 a minute good, and no mean of 0 and 1; a model without traffic has no data rather than a good one;
// le="1.0" and le="1" are one boundary.
func TestTheRatioInPrometheusIsThatOfAllEvents(t *testing.T) {
	doc := slo("ttft", threshold("metric: ttft_seconds"), "{op: lte, value: 1, target: 0.9}")
	file, _ := written(t, catalog(t, doc), Options{})
	p := newPrometheus(t, `
  ttft_seconds_bucket{model_name="a", pod="1", le="1.0"} 0x60
  ttft_seconds_bucket{model_name="a", pod="1", le="+Inf"} 0+1000x60
  ttft_seconds_count{model_name="a", pod="1"} 0+1000x60
  ttft_seconds_bucket{model_name="a", pod="2", le="1"} 0+10x60
  ttft_seconds_bucket{model_name="a", pod="2", le="+Inf"} 0+10x60
  ttft_seconds_count{model_name="a", pod="2"} 0+10x60
  ttft_seconds_bucket{model_name="idle", pod="1", le="1"} 5x60
  ttft_seconds_count{model_name="idle", pod="1"} 5x60
`, file)
	p.run(0, 60)
	got := p.query(`slo:sli:ratio{window="30m", slo_id="llm:chat:ttft:p90", slo_class="latency", service="chat", target="1.0000", unit="seconds"}`, 60)
	assert.Len(t, got, 1)
	assert.InDelta(t, 10./1010, got["a"], 1e-9)
	assert.InDelta(t, (1-10./1010)/0.1, p.query(`slo:burn_rate:ratio{window="30m"}`, 60)["a"], 1e-9)
}

// Scenario: a counter of errors that has no series yet. Guarantees: no error is no error and not "no data".
func TestNoErrorYetIsGood(t *testing.T) {
	doc := slo("errors", ratio("bad", `metric: done_total, condition: 'datapoint.attributes["reason"] == "error"'`, "metric: done_total"), "{target: 0.9}")
	file, _ := written(t, catalog(t, doc), Options{})
	p := newPrometheus(t, `
  done_total{model_name="a", reason="stop"} 0+9x30
  done_total{model_name="b", reason="stop"} 0+6x30
  done_total{model_name="b", reason="error"} 0+3x30
`, file)
	p.run(0, 30)
	got := p.query(`slo:sli:ratio{window="5m"}`, 30)
	assert.InDelta(t, 1, got["a"], 1e-9)
	assert.InDelta(t, 2./3, got["b"], 1e-9)
}

const policy = `---
apiVersion: otelcol-llm.dev/v1alpha1
kind: ViolationPolicy
metadata: {name: slow-3x5m}
spec: {window: 5m, consecutiveWindows: 3, when: {all: [{slo: ttft}, {any: [{slo: errors}, {slo: ttft}]}]}, onNoData: close}
`

// Scenario: model a misses its objective in minutes 10 to 25, which are three windows; model b in 10 to 20, which are
// two, c all the time but in the second of four windows, and d keeps its objective to the event. Guarantees: a violation
// for a once its third window has closed, none for the others, and its end with the first window that is kept.
func TestAViolationNeedsItsWindowsInARow(t *testing.T) {
	doc := slo("ttft", threshold("metric: ttft_seconds"), "{op: lte, value: 1, target: 0.9}") +
		slo("errors", ratio("bad", "metric: errors_total", "metric: ttft_seconds"), "{target: 0.9}") + policy
	file, skipped := written(t, catalog(t, doc), Options{})
	require.Empty(t, skipped)
	p := newPrometheus(t, `
  ttft_seconds_count{model_name="a"} 0+10x60
  ttft_seconds_bucket{model_name="a", le="1"} 0+10x10 100+5x14 180+10x34
  ttft_seconds_count{model_name="b"} 0+10x60
  ttft_seconds_bucket{model_name="b", le="1"} 0+10x10 100+5x9 155+10x39
  ttft_seconds_count{model_name="c"} 0+10x60
  ttft_seconds_bucket{model_name="c", le="1"} 0+10x10 100+5x4 130+10x4 175+5x9 225+10x30
  ttft_seconds_count{model_name="d"} 0+10x60
  ttft_seconds_bucket{model_name="d", le="1"} 0+9x60
`, file)
	p.run(0, 24)
	assert.Empty(t, p.firing())
	p.run(25, 26)
	assert.Equal(t, []string{"slo:violation a"}, p.firing())
	p.run(27, 29)
	assert.Equal(t, []string{"slo:violation a"}, p.firing())
	p.run(30, 31)
	assert.Empty(t, p.firing())
}

// Scenario: half of all events are bad from minute 60 on, of a budget of 10 %, and then all is well. Guarantees: the
// alert on a burn rate of 4 fires when both its windows have seen it for alertAfter, and ends soon after its cause.
func TestABurnRateAlertFiresOnBothItsWindows(t *testing.T) {
	doc := slo("ttft", threshold("metric: ttft_seconds"), "{op: lte, value: 1, target: 0.9}", "budgetingMethod: Occurrences", `alertPolicies:
    - kind: AlertPolicy
      metadata: {name: page}
      spec:
        alertWhenBreaching: true
        alertWhenNoData: true
        conditions:
          - {kind: AlertCondition, metadata: {name: burn}, spec: {severity: page, condition: {op: gte, threshold: 4, lookbackWindow: 1h, alertAfter: 5m}}}`)
	file, skipped := written(t, catalog(t, doc), Options{})
	require.Empty(t, skipped)
	p := newPrometheus(t, `
  ttft_seconds_count{model_name="a"} 0+10x180 _x200
  ttft_seconds_bucket{model_name="a", le="1"} 0+10x60 600+5x59 905+10x59 _x200
`, file)
	p.run(0, 108) // 48 bad minutes of 60 are a burn rate of 4: 0.8 · 0.5 / 0.1
	assert.Empty(t, p.firing())
	p.run(109, 115)
	assert.Equal(t, []string{"slo:burn_rate a"}, p.firing())
	p.run(116, 130) // all is well from minute 120 on: the short window knows at once
	assert.Empty(t, p.firing())
	p.run(131, 250) // nothing comes any more after minute 180
	assert.Equal(t, []string{"slo:no_data a"}, p.firing())
}

// Scenario: a gauge above its limit in a fifth of its readings, all in one slice of five minutes out of four.
// Guarantees: the ratio counts readings, and the budget of the slices counts slices.
func TestSlicesOfAGauge(t *testing.T) {
	doc := slo("kv", threshold("metric: kv_usage_ratio"), "{op: lte, value: 0.9, target: 0.5, timeSliceTarget: 0.9, timeSliceWindow: 5m}",
		"budgetingMethod: Timeslices")
	file, skipped := written(t, catalog(t, doc), Options{})
	require.Empty(t, skipped)
	p := newPrometheus(t, `
  kv_usage_ratio{model_name="a"} 0.5x10 0.95x3 0.5x60
`, file)
	p.run(0, 30)
	assert.InDelta(t, 26./30, p.query(`slo:sli:ratio{window="30m"}`, 30)["a"], 1e-9)
	assert.InDelta(t, 1./6/0.5, p.query(`slo:burn_rate:ratio{window="30m"}`, 30)["a"], 1e-9)
}
