// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// schemaConfig labels, writes the labelled points down, and judges them.
const schemaConfig = `
extensions:
  slo_catalog: {paths: [%[1]s/slo.yaml], reload_interval: 50ms}
receivers:
  otlp: {protocols: {http: {endpoint: %[2]q}}}
processors:
  slo_schema: {on_unknown: tag}
connectors:
  slo: {lateness: 0s, idle_timeout: 2s}
exporters:
  file/labelled: {path: %[1]s/labelled.jsonl, flush_interval: 100ms}
  file/metrics: {path: %[1]s/metrics.jsonl, flush_interval: 100ms}
service:
  extensions: [slo_catalog]
  pipelines:
    metrics: {receivers: [otlp], processors: [slo_schema], exporters: [slo, file/labelled]}
    metrics/slo: {receivers: [slo], exporters: [file/metrics]}
  telemetry: {metrics: {level: none}}
`

// startSchema starts a Collector that labels and judges.
func startSchema(t *testing.T, slos string) *judge {
	t.Helper()
	dir, endpoint := t.TempDir(), spawn.FreeEndpoint(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "slo.yaml"), []byte(slos), 0o600))
	j := &judge{t: t, otlp: "http://" + endpoint + "/v1/metrics", dir: dir,
		Collector: spawn.Start(t, spawn.Options{Configs: []string{spawn.WriteConfig(t, fmt.Sprintf(schemaConfig, dir, endpoint))}})}
	j.WaitReady()
	return j
}

// Scenario: an SLO's objective is edited while points of it come in, and then broken by a mistake.
// Guarantees: points get the new target without a restart, the mistake changes nothing, and no point is lost.
func TestAnEditedObjectiveIsTheNextTarget(t *testing.T) {
	parallel(t)
	j, t0, sent := startSchema(t, ttftSLO), origin(), 0
	targets := func() (all []string) {
		each(t, filepath.Join(j.dir, "labelled.jsonl"), func(line []byte) {
			md, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(line)
			require.NoError(t, err)
			for _, p := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Histogram().DataPoints().All() {
				target, _ := p.Attributes().Get("target")
				all = append(all, target.Str())
			}
		})
		return all
	}
	// until sends points until one comes out with a target, and the log has a text.
	until := func(target, text string) {
		t.Helper()
		require.Eventually(t, func() bool {
			j.send(batchOf([]ttftPoint{{at: t0.Add(time.Duration(sent) * time.Second), fast: 20}}))
			sent++
			all := targets()
			return len(all) > 0 && all[len(all)-1] == target && strings.Contains(j.Logs(), text)
		}, patience, 100*time.Millisecond, target)
	}
	edit := func(slos string) {
		t.Helper()
		file := filepath.Join(j.dir, "slo.yaml")
		require.NoError(t, os.WriteFile(file+".next", []byte(slos), 0o600))
		require.NoError(t, os.Rename(file+".next", file))
	}
	until("0.8000", "")
	edit(strings.Replace(ttftSLO, "value: 800", "value: 1000", 1))
	until("1.0000", "the SLO catalog has changed")
	edit(strings.Replace(ttftSLO, "target: 0.95", "target: 95", 1))
	until("1.0000", "95 is not in [0, 1)")
	until("1.0000", "")
	require.Eventually(t, func() bool { return len(targets()) == sent }, patience, 100*time.Millisecond)
	assert.Zero(t, j.Stop())
}

// Scenario: two SLOs are made of one metric. An hour of its points, with a tenant on the resource, passes slo_schema on its
// way to the slo connector; beside them come a series of Sloth before its target is known, and one that is nobody's.
// Guarantees: each point carries the first SLO's labels, both ids and the tenant, once; the connector counts every event
// once for each SLO, as it does without slo_schema.
func TestLabelledPointsAreJudgedOnce(t *testing.T) {
	parallel(t)
	t0 := origin()
	second := strings.NewReplacer("chat-ttft", "chat-ttft-fast", "llm:chat:ttft:p95", "llm:chat:ttft-fast:p95", "value: 800", "value: 250").
		Replace(strings.Split(ttftSLO, "---")[0])
	j := startSchema(t, ttftSLO+"---"+second)

	md := batchOf(hourOf(t0, 720, 3))
	md.ResourceMetrics().At(0).Resource().Attributes().PutStr("tenant", "acme")
	for name, sloth := range map[string]string{"slo:current_burn_rate:ratio": "chat-errors", "queue_depth": ""} {
		m := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().AppendEmpty()
		m.SetName(name)
		p := m.SetEmptyGauge().DataPoints().AppendEmpty()
		if sloth != "" {
			p.Attributes().PutStr("sloth_id", sloth)
			p.Attributes().PutStr("sloth_service", "chat")
		}
	}
	j.send(md)
	j.judged(t0.Add(time.Hour), "llm:chat:ttft:p95", "llm:chat:ttft-fast:p95")

	f := func(id string, good, bad float64) {
		t.Helper()
		for outcome, want := range map[string]float64{"good": good, "bad": bad} {
			p, ok := j.newest("slo.sli.events", map[string]string{"slo_id": id, "outcome": outcome})
			assert.True(t, ok)
			assert.InDelta(t, want, p.value, 0, "%s %s", id, outcome)
		}
	}
	f("llm:chat:ttft:p95", 660*20+60*18, 60*2)
	f("llm:chat:ttft-fast:p95", 0, 720*20)

	points := map[string]int{}
	each(t, filepath.Join(j.dir, "labelled.jsonl"), func(line []byte) {
		md, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(line)
		require.NoError(t, err)
		for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			if m.Type() == pmetric.MetricTypeHistogram {
				for _, p := range m.Histogram().DataPoints().All() {
					points[fmt.Sprint(p.Attributes().AsRaw())]++
				}
				continue
			}
			for _, p := range numbers(m).All() {
				points[fmt.Sprint(m.Name(), p.Attributes().AsRaw())]++
			}
		}
	})
	assert.Equal(t, map[string]int{
		fmt.Sprint(map[string]any{"slo_id": "llm:chat:ttft-fast:p95", "service": "chat", "slo_class": "latency", "target": "0.2500",
			"unit": "seconds", "tenant": "acme", "slo.ids": []any{"llm:chat:ttft-fast:p95", "llm:chat:ttft:p95"}}): 720,
		fmt.Sprint("slo:current_burn_rate:ratio", map[string]any{"slo_id": "chat-errors", "service": "chat", "slo_class": "availability",
			"unit": "ratio", "tenant": "acme", "sloth_id": "chat-errors", "sloth_service": "chat", "slo.missing": "target"}): 1,
		fmt.Sprint("queue_depth", map[string]any{}): 1,
	}, points)
}
