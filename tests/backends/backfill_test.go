// SPDX-License-Identifier: Apache-2.0

//go:build backends

package backends

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/backfill"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// day is a day of March 2026, with hours.
func day(n int, hours float64) time.Time {
	return time.Date(2026, 3, n, 0, 0, 0, 0, time.UTC).Add(time.Duration(hours * float64(time.Hour)))
}

type interval struct{ start, end time.Time }

func (i interval) holds(t time.Time) bool { return !t.Before(i.start) && t.Before(i.end) }

// pod has 60 requests a minute. Its history has a sample in the middle of each.
type pod struct {
	model, le string                  // le as its exporter spells the boundary of 1
	share     func(time.Time) float64 // of requests that are fast, and of those that succeed
	restart   time.Time               // its counters begin anew
	unseen    []interval              // Prometheus did not look
	fast, all map[time.Time]float64   // counted since the beginning, as nobody resets it
}

func (p *pod) seen(t time.Time) bool {
	return !slices.ContainsFunc(p.unseen, func(gap interval) bool { return gap.holds(t) })
}

// write counts each minute from begin to end and writes what an exporter would have shown.
func (p *pod) write(w *bufio.Writer, begin, end time.Time) {
	p.fast, p.all = map[time.Time]float64{}, map[time.Time]float64{}
	lines := map[string][]string{}
	var fast, all, fastThen, allThen float64
	for t := begin; !t.After(end); t = t.Add(time.Minute) {
		p.fast[t], p.all[t] = fast, all
		if t.Equal(p.restart) {
			fastThen, allThen = fast, all
		}
		if p.seen(t) {
			add := func(series string, v float64) {
				lines[series] = append(lines[series], fmt.Sprintf("%s %f %d\n", series, v, t.Add(30*time.Second).Unix()))
			}
			good, every := fast-fastThen+30*p.share(t), all-allThen+30
			labels := fmt.Sprintf(`model_name=%q,pod=%q`, p.model, p.model)
			add(fmt.Sprintf(`ttft_seconds_bucket{%s,le=%q}`, labels, p.le), good)
			add(fmt.Sprintf(`ttft_seconds_count{%s}`, labels), every)
			add(fmt.Sprintf(`requests_total{%s,code="200"}`, labels), good)
			if every > good {
				add(fmt.Sprintf(`requests_total{%s,code="500"}`, labels), every-good)
			}
			add(fmt.Sprintf(`kv_cache_usage_ratio{%s}`, labels), p.share(t))
			add(fmt.Sprintf(`cache_hit_ratio{%s}`, labels), p.share(t))
		}
		fast, all = fast+60*p.share(t), all+60
	}
	for _, series := range lines {
		for _, line := range series {
			_, _ = w.WriteString(line)
		}
	}
}

// startPrometheusWith runs Prometheus on a history.
func startPrometheusWith(t testing.TB, begin, end time.Time, pods ...*pod) string {
	t.Helper()
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "history.txt"))
	require.NoError(t, err)
	w := bufio.NewWriter(file)
	for _, p := range pods {
		p.write(w, begin, end)
	}
	_, _ = w.WriteString("# EOF\n")
	require.NoError(t, w.Flush())
	require.NoError(t, file.Close())
	data := filepath.Join(dir, "data")
	run(t, promtool(t), "tsdb", "create-blocks-from", "openmetrics", "--quiet", file.Name(), data)
	address, config := spawn.FreeEndpoint(t), spawn.WriteConfig(t, "global: {}\n")
	keep(t, prometheus(t), "--config.file="+config, "--web.listen-address="+address, "--storage.tsdb.path="+data, "--storage.tsdb.retention.time=10y")
	require.Eventually(t, func() bool {
		resp, err := http.Get("http://" + address + "/-/ready")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, arrives, 100*time.Millisecond, "Prometheus is not ready")
	return address
}

const promises = `
apiVersion: openslo/v1
kind: SLO
metadata: {name: ttft, annotations: {otelcol-llm.dev/group-by: model_name}}
spec:
  service: chat
  indicator: {metadata: {name: ttft}, spec: {thresholdMetric: {metricSource: {type: opentelemetry, spec: {metric: ttft_seconds}}}}}
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{op: lte, value: 1, target: 0.9}]
---
apiVersion: openslo/v1
kind: SLO
metadata: {name: errors, annotations: {otelcol-llm.dev/group-by: model_name}}
spec:
  service: chat
  indicator:
    metadata: {name: errors}
    spec:
      ratioMetric:
        bad: {metricSource: {type: opentelemetry, spec: {metric: requests_total, condition: 'datapoint.attributes["code"] == 500'}}}
        total: {metricSource: {type: opentelemetry, spec: {metric: requests_total}}}
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{target: 0.9}]
---
apiVersion: openslo/v1
kind: SLO
metadata: {name: slices, annotations: {otelcol-llm.dev/group-by: model_name}}
spec:
  service: chat
  indicator: {metadata: {name: slices}, spec: {thresholdMetric: {metricSource: {type: opentelemetry, spec: {metric: ttft_seconds}}}}}
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Timeslices
  objectives: [{op: lte, value: 1, target: 0.9, timeSliceTarget: 0.7, timeSliceWindow: 10m}]
---
apiVersion: openslo/v1
kind: SLO
metadata: {name: kv, annotations: {otelcol-llm.dev/group-by: model_name}}
spec:
  service: chat
  indicator: {metadata: {name: kv}, spec: {thresholdMetric: {metricSource: {type: opentelemetry, spec: {metric: kv_cache_usage_ratio}}}}}
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{op: gte, value: 0.7, target: 0.9}]
---
apiVersion: openslo/v1
kind: SLO
metadata: {name: hits, annotations: {otelcol-llm.dev/group-by: model_name}}
spec:
  service: chat
  indicator: {metadata: {name: hits}, spec: {ratioMetric: {rawType: success, raw: {metricSource: {type: opentelemetry, spec: {metric: cache_hit_ratio}}}}}}
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{target: 0.9}]
`

// Scenario: ten days of two models. One restarts in the middle of a day; the other becomes worse on the sixth, spells a
// boundary in its own way, and is not looked at for six hours of an old day and five of a young one. Guarantees: what
// Prometheus is asked for is what happened, within 2 % where it extrapolates, for every form of an SLI; what nobody looked
// at is not observed, and a restart is neither a loss nor a spike.
func TestWhatPrometheusKnowsOfThePastIsWhatHappened(t *testing.T) {
	begin, end := day(1, 0), day(11, 7.7)
	a := &pod{model: "a", le: "1.0", restart: day(5, 12.5), share: func(time.Time) float64 { return 0.95 }}
	b := &pod{
		model: "b", le: "1", unseen: []interval{{day(4, 10), day(4, 16)}, {day(10, 3), day(10, 8)}},
		share: func(t time.Time) float64 {
			if t.Before(day(6, 0)) {
				return 0.8
			}
			return 0.5
		},
	}
	pods := map[string]*pod{"a": a, "b": b}
	api, err := backfill.NewAPI("http://"+startPrometheusWith(t, begin, end, a, b), http.DefaultClient)
	require.NoError(t, err)
	catalog, err := openslo.Parse(openslo.Source{Name: "slo.yaml", Data: []byte(promises)})
	require.NoError(t, err)
	require.Len(t, catalog.SLOs, 5)

	for i := range catalog.SLOs {
		slo := &catalog.SLOs[i]
		t.Run(slo.Name, func(t *testing.T) {
			var worst float64
			near := func(want, got float64, what string, s backfill.Slot) {
				t.Helper()
				if want == 0 {
					assert.Zero(t, got, "%s at %s by %s", what, s.Start, s.Length)
					return
				}
				off := max(got/want-1, 1-got/want)
				worst = max(worst, off)
				assert.LessOrEqual(t, off, 0.02, "%s at %s by %s: %g of %g", what, s.Start, s.Length, got, want)
			}
			observed, good, total := map[string]time.Duration{}, map[string]float64{}, map[string]float64{}
			for _, span := range backfill.Plan(begin, end, 24*time.Hour, slo.Objective.TimeSliceWindow) {
				answer, err := backfill.Query(t.Context(), api, backfill.Request{SLO: slo, GroupBy: slo.GroupBy, Span: span})
				require.NoError(t, err)
				assert.Empty(t, answer.Withheld)
				assert.Empty(t, answer.Warnings)
				require.Len(t, answer.Series, 2)
				for _, series := range answer.Series {
					p := pods[series.Values[0]]
					for _, s := range series.Slots {
						wantGood, wantTotal, seen := p.truth(slo, s)
						near(wantTotal, s.Total, "total of "+p.model, s)
						near(wantGood, s.Good, "good of "+p.model, s)
						assert.InDelta(t, seen.Minutes(), s.Observed.Minutes(), 5, "%s of %s", s.Start, p.model)
						observed[p.model] += s.Observed
						good[p.model] += s.Good
						total[p.model] += s.Total
					}
				}
			}
			t.Logf("at most %.2f %% off in a step; good %v of %v, observed %v", 100*worst, good, total, observed)
			window := end.Sub(begin)
			assert.InDelta(t, window.Minutes(), observed["a"].Minutes(), 10)
			assert.InDelta(t, (window - 11*time.Hour).Minutes(), observed["b"].Minutes(), 25)
		})
	}
}

// truth is what happened in a slot, in what the SLO's budget counts, and for how long Prometheus looked.
func (p *pod) truth(slo *openslo.SLO, s backfill.Slot) (good, total float64, seen time.Duration) {
	end := s.Start.Add(s.Length)
	seenGood, seenTotal := 0., 0.
	for t := s.Start; t.Before(end); t = t.Add(time.Minute) {
		if p.seen(t) {
			seen += time.Minute
			seenTotal++
			if slo.Name == "hits" {
				seenGood += p.share(t)
			} else if p.share(t) >= 0.7 {
				seenGood++
			}
		}
	}
	switch slo.Name {
	case "kv", "hits": // readings: what was not read does not count
		return seenGood, seenTotal, seen
	case "slices":
		return seenGood / 10, seenTotal / 10, seen
	}
	return p.fast[end] - p.fast[s.Start], p.all[end] - p.all[s.Start], seen
}
