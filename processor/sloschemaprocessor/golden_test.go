// SPDX-License-Identifier: Apache-2.0

package sloschemaprocessor

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/pmetrictest"
)

// chatDocs promise that 95 % of first tokens come within 0.8 s, the same for one model within 0.5 s (99 %), and that
// 99.9 % of requests succeed.
const chatDocs = `
apiVersion: openslo/v1
kind: SLO
metadata: {name: chat-ttft, annotations: {otelcol-llm.dev/slo-id: "llm:chat:ttft:p95", otelcol-llm.dev/class: latency}}
spec:
  service: chat
  indicator:
    metadata: {name: ttft}
    spec:
      thresholdMetric:
        metricSource: {type: opentelemetry, spec: {metric: "vllm:time_to_first_token_seconds"}}
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{op: lte, value: 0.8, target: 0.95}]
---
apiVersion: openslo/v1
kind: SLO
metadata: {name: qwen-ttft, annotations: {otelcol-llm.dev/slo-id: "llm:chat:ttft-qwen:p99", otelcol-llm.dev/class: latency}}
spec:
  service: chat
  indicator:
    metadata: {name: ttft}
    spec:
      thresholdMetric:
        metricSource:
          type: opentelemetry
          spec: {metric: "vllm:time_to_first_token_seconds", condition: 'datapoint.attributes["model_name"] == "qwen2-72b"'}
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{op: lte, value: 0.5, target: 0.99}]
---
apiVersion: openslo/v1
kind: SLO
metadata: {name: chat-success, annotations: {otelcol-llm.dev/slo-id: "llm:chat:success:rate", otelcol-llm.dev/class: availability}}
spec:
  service: chat
  indicator:
    metadata: {name: success}
    spec:
      ratioMetric:
        counter: true
        good:
          metricSource:
            type: opentelemetry
            spec: {metric: "vllm:request_success_total", condition: 'not IsMatch(datapoint.attributes["finished_reason"], "^(abort|error)$")'}
        total: {metricSource: {type: opentelemetry, spec: {metric: "vllm:request_success_total", condition: 'datapoint.attributes["model_name"] != nil'}}}
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{target: 0.999}]
`

// Guarantees: what goes in comes out with the labels that README.md promises, and otherwise as it was.
// To write the results anew: UPDATE=1 go test ./processor/sloschemaprocessor -run Golden, and read the difference.
func TestGolden(t *testing.T) {
	f := func(in, out string, configure func(*Config)) {
		t.Run(out, func(t *testing.T) {
			md, err := golden.ReadMetrics(filepath.Join("testdata", "golden", in+".in.yaml"))
			require.NoError(t, err)
			before := md.DataPointCount()
			r := newRig(t, parse(t, chatDocs), configure)
			got, err := r.process(t.Context(), md)
			require.NoError(t, err)
			if r.cfg.OnUnknown != Drop {
				assert.Equal(t, before, got.DataPointCount())
			}
			file := filepath.Join("testdata", "golden", out+".out.yaml")
			if os.Getenv("UPDATE") != "" {
				require.NoError(t, golden.WriteMetricsToFile(file, got, golden.SkipMetricTimestampNormalization()))
			}
			want, err := golden.ReadMetrics(file)
			require.NoError(t, err)
			require.NoError(t, pmetrictest.CompareMetrics(want, got, pmetrictest.IgnoreResourceMetricsOrder(),
				pmetrictest.IgnoreMetricsOrder(), pmetrictest.IgnoreMetricDataPointsOrder())) // files are sorted
		})
	}
	f("catalog", "catalog", nil)
	f("catalog", "catalog_ids_only", func(c *Config) { c.OnMultiple = IDsOnly })
	f("sloth", "sloth", func(c *Config) { c.ClassRules = []ClassRule{{SLOID: "ttft|latency", Class: "latency"}} })
	f("sloth", "sloth_labels_translated", func(c *Config) { c.KeepDialectLabels = false })
	f("sloth", "sloth_off", func(c *Config) { c.Dialects = []string{"pyrra"} })
	f("pyrra", "pyrra", nil)
	f("slo_generator", "slo_generator", nil)
	f("moved_aside", "moved_aside", nil)
	f("unknown", "unknown_keep", nil)
	f("unknown", "unknown_tag", func(c *Config) { c.OnUnknown = Tag })
	f("unknown", "unknown_drop", func(c *Config) { c.OnUnknown = Drop })
}
