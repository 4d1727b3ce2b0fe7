// SPDX-License-Identifier: Apache-2.0

//go:build backends

package backends

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/internal/backfill"
	"github.com/otelcol-llm/otelcol-llm/internal/budget"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// live are some scrapes of pods up to a time, a quarter of a minute apart, as an OTLP client would send them.
func live(until time.Time, pods ...*pod) pmetric.Metrics {
	md := pmetric.NewMetrics()
	for _, p := range pods {
		rm := md.ResourceMetrics().AppendEmpty()
		rm.Resource().Attributes().PutStr("service.instance.id", p.model)
		sm := rm.ScopeMetrics().AppendEmpty()
		add := func(name string) pmetric.Metric {
			m := sm.Metrics().AppendEmpty()
			m.SetName(name)
			return m
		}
		describe := func(at time.Time, attributes pcommon.Map, to interface{ SetTimestamp(pcommon.Timestamp) }) {
			to.SetTimestamp(pcommon.NewTimestampFromTime(at))
			attributes.PutStr("model_name", p.model)
		}
		for i := range 9 {
			at := until.Add(time.Duration(i-8) * 15 * time.Second)
			all := uint64(1_000_000 + 15*i)
			fast := uint64(float64(all) * p.share(at))
			h := add("ttft_seconds").SetEmptyHistogram()
			h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			hp := h.DataPoints().AppendEmpty()
			describe(at, hp.Attributes(), hp)
			hp.ExplicitBounds().FromRaw([]float64{1})
			hp.BucketCounts().FromRaw([]uint64{fast, all - fast})
			hp.SetCount(all)
			for code, n := range map[int64]uint64{200: fast, 500: all - fast} {
				c := add("requests_total").SetEmptySum()
				c.SetIsMonotonic(true)
				c.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
				cp := c.DataPoints().AppendEmpty()
				describe(at, cp.Attributes(), cp)
				cp.Attributes().PutInt("code", code)
				cp.SetIntValue(int64(n))
			}
			for _, name := range []string{"kv_cache_usage_ratio", "cache_hit_ratio"} {
				gp := add(name).SetEmptyGauge().DataPoints().AppendEmpty()
				describe(at, gp.Attributes(), gp)
				gp.SetDoubleValue(p.share(at))
			}
		}
	}
	return md
}

// observed is what happened between two times while Prometheus looked, in what the SLO's budget counts.
func (p *pod) observed(slo *openslo.SLO, begin, end time.Time) (c budget.Counts) {
	for t := begin; t.Before(end); t = t.Add(time.Minute) {
		if p.seen(t) {
			good, total, seen := p.truth(slo, backfill.Slot{Start: t, Length: time.Minute})
			c = c.Add(budget.Counts{Good: good, Total: total, Observed: seen})
		}
	}
	return c
}

// Scenario: two models have been served for two weeks, and Prometheus has looked, but for 36 hours of one of them in the first
// week and five yesterday. That one had a bad day. Now a Collector is installed, with a Prometheus to ask, and one without.
// Guarantees: soon after its start the first one's budgets over 28 days say what was observed, within 2 % of the budget, and
// coverage says that half of the time is known, and less of the model that was not looked at; the other one's coverage says
// that it knows next to nothing.
func TestANewInstallKnowsWhatPrometheusKnows(t *testing.T) {
	const window, off = 28 * 24 * time.Hour, 0.02
	now := time.Now().UTC()
	end := now.Truncate(time.Minute).Add(-time.Minute)
	begin := end.Truncate(time.Hour).Add(-14 * 24 * time.Hour)
	hours := func(h float64) time.Time { return begin.Add(time.Duration(h * float64(time.Hour))) }
	a := &pod{model: "a", le: "1.0", restart: hours(100.5), share: func(time.Time) float64 { return 0.95 }}
	b := &pod{
		model: "b", le: "1", unseen: []interval{{hours(40), hours(76)}, {hours(310), hours(315)}},
		share: func(at time.Time) float64 {
			if (interval{hours(150), hours(174)}).holds(at) {
				return 0.6
			}
			return 0.98
		},
	}
	pods := map[string]*pod{"a": a, "b": b}
	address := startPrometheusWith(t, begin, end, a, b)
	catalog, err := openslo.Parse(openslo.Source{Name: "slo.yaml", Data: []byte(promises)})
	require.NoError(t, err)

	filled := startJudge(t, promises, `backfill: {endpoint: "http://`+address+`"}`)
	began := time.Now()
	empty := startJudge(t, promises, "")
	for _, j := range []*judge{filled, empty} {
		j.send(live(time.Now(), a, b))
	}
	of := func(j *judge, metric string, slo *openslo.SLO, model string) (float64, bool) {
		return j.result(metric, map[string]string{"slo_id": slo.ID, "model_name": model})
	}
	const coverage, remaining = "slo_error_budget_coverage_ratio", "slo_error_budget_remaining_ratio"
	require.Eventually(t, func() bool {
		return strings.Count(filled.Logs(), "the error budget was filled with what had happened before") == len(catalog.SLOs)
	}, arrives, often, "budgets are not filled")
	t.Logf("budgets were filled %s after the start", time.Since(began).Round(time.Millisecond))
	for i := range catalog.SLOs {
		slo := &catalog.SLOs[i]
		// What is told first may be of a budget that is half filled; it is told again. What it comes to is looked at below.
		assert.Eventually(t, func() bool {
			for model, p := range pods {
				known, _ := of(filled, coverage, slo, model)
				if want := float64(p.observed(slo, begin, end).Observed) / float64(window); math.Abs(known-want) > off*want {
					return false
				}
			}
			return true
		}, arrives, often, "what was filled is not told of %s", slo.ID)
		for model, p := range pods {
			counts := p.observed(slo, begin, end)
			seen := counts.Observed
			want, ok := counts.Remaining(slo.Objective.Target)
			require.True(t, ok)
			left, ok := of(filled, remaining, slo, model)
			require.True(t, ok, "%s of %s", slo.ID, model)
			known, _ := of(filled, coverage, slo, model)
			t.Logf("%s of %s: remaining %.4f, in truth %.4f; coverage %.4f, in truth %.4f", slo.Name, model, left, want, known, float64(seen)/float64(window))
			assert.InDelta(t, want, left, off, "remaining of %s of %s", slo.Name, model)
			assert.InDelta(t, float64(seen)/float64(window), known, off*float64(seen)/float64(window), "coverage of %s of %s", slo.Name, model)

			knows, ok := of(empty, coverage, slo, model)
			assert.True(t, !ok || knows < 0.001, "without backfill: coverage of %s of %s is %g", slo.Name, model, knows)
		}
		ofA, _ := of(filled, coverage, slo, "a")
		ofB, _ := of(filled, coverage, slo, "b")
		assert.InDelta(t, 41, (ofA-ofB)*window.Hours(), 2, "hours that nobody looked at b: %s", slo.Name)
	}
	assert.Equal(t, 0, filled.Stop())
	assert.Equal(t, 0, empty.Stop())
}
