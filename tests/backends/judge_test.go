// SPDX-License-Identifier: Apache-2.0

//go:build backends

package backends

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// judge is a Collector that judges OTLP by an SLO file and shows its results to whoever scrapes them.
type judge struct {
	*spawn.Collector
	t       testing.TB
	slos    string // file
	config  string
	otlp    string // URL
	results string // URL
}

const judgeConfig = `
extensions:
  slo_catalog: {paths: [%[1]q], reload_interval: 100ms}
  file_storage: {directory: %[2]q}
receivers:
  otlp: {protocols: {http: {endpoint: %[3]q}}}
connectors:
  slo: {lateness: 0s, idle_timeout: 2s, burn_rates: [], refresh_interval: 1s, %[5]s}
exporters:
  prometheus: {endpoint: %[4]q}
  nop:
service:
  extensions: [slo_catalog, file_storage]
  pipelines:
    metrics: {receivers: [otlp], exporters: [slo]}
    metrics/slo: {receivers: [slo], exporters: [prometheus]}
    logs/slo: {receivers: [slo], exporters: [nop]}
  telemetry: {metrics: {level: none}}
`

func startJudge(t testing.TB, slos, settings string) *judge {
	t.Helper()
	dir := t.TempDir()
	otlp, results := spawn.FreeEndpoint(t), spawn.FreeEndpoint(t)
	j := &judge{t: t, slos: filepath.Join(dir, "slo.yaml"), otlp: "http://" + otlp, results: "http://" + results + "/metrics"}
	j.write(slos)
	j.config = spawn.WriteConfig(t, fmt.Sprintf(judgeConfig, j.slos, t.TempDir(), otlp, results, settings))
	j.start()
	return j
}

// start starts it, again after a Kill.
func (j *judge) start() {
	j.t.Helper()
	j.Collector = spawn.Start(j.t, spawn.Options{Configs: []string{j.config}})
	j.WaitReady()
}

// write changes the SLO file, in one go.
func (j *judge) write(slos string) {
	j.t.Helper()
	require.NoError(j.t, os.WriteFile(j.slos+".next", []byte(slos), 0o600))
	require.NoError(j.t, os.Rename(j.slos+".next", j.slos))
}

func (j *judge) send(md pmetric.Metrics) {
	j.t.Helper()
	body, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
	require.NoError(j.t, err)
	resp, err := http.Post(j.otlp+"/v1/metrics", "application/x-protobuf", bytes.NewReader(body))
	require.NoError(j.t, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(j.t, err)
	require.Equal(j.t, http.StatusOK, resp.StatusCode, string(answer))
}

// result is the only series of a metric, by its name in Prometheus, whose labels contain these.
func (j *judge) result(name string, labels map[string]string) (value float64, ok bool) {
	j.t.Helper()
	resp, err := http.Get(j.results)
	require.NoError(j.t, err)
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	require.NoError(j.t, err)
	for _, m := range families[name].GetMetric() {
		have := map[string]string{}
		for _, l := range m.GetLabel() {
			have[l.GetName()] = l.GetValue()
		}
		missing := maps.Clone(labels)
		maps.DeleteFunc(missing, func(k, v string) bool { return have[k] == v })
		if len(missing) == 0 {
			require.False(j.t, ok, "%s %v is not one series", name, labels)
			value, ok = m.GetGauge().GetValue()+m.GetCounter().GetValue(), true
		}
	}
	return value, ok
}
