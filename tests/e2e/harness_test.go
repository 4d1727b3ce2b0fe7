// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// judge is a Collector that takes OTLP, judges it by SLO files and writes results and events to files.
type judge struct {
	*spawn.Collector
	t       testing.TB
	otlp    string
	dir     string
	metrics string // URL of its own telemetry
}

// judgeConfig closes windows by what comes in only, however long it takes to come: a test says that its input has ended by a point
// beyond it.
const judgeConfig = `
extensions:
  slo_catalog: {paths: [%[1]s/slo.yaml], reload_interval: 100ms}
receivers:
  otlp: {protocols: {http: {endpoint: %[2]q}}}
connectors:
  slo: {lateness: 0s, idle_timeout: 1h}
exporters:
  file/metrics: {path: %[1]s/metrics.jsonl, flush_interval: 100ms}
  file/events: {path: %[1]s/events.jsonl, flush_interval: 100ms}
service:
  extensions: [slo_catalog]
  pipelines:
    metrics: {receivers: [otlp], exporters: [slo]}
    metrics/slo: {receivers: [slo], exporters: [file/metrics]}
    logs/slo: {receivers: [slo], exporters: [file/events]}
  telemetry:
    metrics:
      readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: %[3]d}}}}]
`

func startJudge(t testing.TB, slos string) *judge {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "slo.yaml"), []byte(slos), 0o600))
	otlp, port := spawn.FreeEndpoint(t), spawn.FreePort(t)
	j := &judge{
		t: t, otlp: "http://" + otlp + "/v1/metrics", dir: dir, metrics: fmt.Sprintf("http://127.0.0.1:%d/metrics", port),
		Collector: spawn.Start(t, spawn.Options{Configs: []string{spawn.WriteConfig(t, fmt.Sprintf(judgeConfig, dir, otlp, port))}}),
	}
	j.WaitReady()
	return j
}

// send posts one OTLP request.
func (j *judge) send(md pmetric.Metrics) {
	j.t.Helper()
	body, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
	require.NoError(j.t, err)
	resp, err := http.Post(j.otlp, "application/x-protobuf", bytes.NewReader(body))
	require.NoError(j.t, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(j.t, err)
	require.Equal(j.t, http.StatusOK, resp.StatusCode, string(answer))
}

// event is a log event, with its time in minutes after an origin.
type event struct {
	name   string
	minute int
	id     string
	slos   []any
}

// events are the log events written so far.
func (j *judge) events(origin time.Time) (all []event) {
	j.t.Helper()
	each(j.t, filepath.Join(j.dir, "events.jsonl"), func(line []byte) {
		ld, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(line)
		require.NoError(j.t, err)
		for _, rl := range ld.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, r := range sl.LogRecords().All() {
					id, _ := r.Attributes().Get("slo.violation.id")
					ids, _ := r.Attributes().Get("slo.ids")
					all = append(all, event{r.EventName(), int(r.Timestamp().AsTime().Sub(origin).Minutes()), id.Str(), ids.Slice().AsRaw()})
				}
			}
		}
	})
	return all
}

// point is a result's newest point: the value and when it is for.
type point struct {
	value float64
	at    time.Time
}

// newest is the newest point of a metric whose attributes contain want.
func (j *judge) newest(name string, want map[string]string) (found point, ok bool) {
	j.t.Helper()
	each(j.t, filepath.Join(j.dir, "metrics.jsonl"), func(line []byte) {
		md, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(line)
		require.NoError(j.t, err)
		for _, rm := range md.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					if m.Name() != name {
						continue
					}
					for _, p := range numbers(m).All() {
						if contains(p.Attributes(), want) {
							found, ok = point{number(p), p.Timestamp().AsTime()}, true
						}
					}
				}
			}
		}
	})
	return found, ok
}

// judged waits until the window that ends at end has its verdict, for every one of the SLOs, and stops the Collector: then all that it
// has told is written.
func (j *judge) judged(end time.Time, slos ...string) {
	j.t.Helper()
	for _, id := range slos {
		require.Eventually(j.t, func() bool {
			// Not slo.state: before any input it is that of a window of today.
			p, ok := j.newest("slo.sli.value", map[string]string{"slo_id": id})
			return ok && !p.at.Before(end)
		}, patience, 100*time.Millisecond, "%s was not judged up to %s", id, end)
	}
	require.Equal(j.t, 0, j.Stop())
}

// each calls f for every whole line of a file that may not exist yet.
func each(t testing.TB, path string, f func(line []byte)) {
	t.Helper()
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return
	}
	require.NoError(t, err)
	for {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		if !whole {
			return
		}
		f(line)
		data = rest
	}
}

func numbers(m pmetric.Metric) pmetric.NumberDataPointSlice {
	if m.Type() == pmetric.MetricTypeSum {
		return m.Sum().DataPoints()
	}
	return m.Gauge().DataPoints()
}

func number(p pmetric.NumberDataPoint) float64 {
	if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
		return float64(p.IntValue())
	}
	return p.DoubleValue()
}

func contains(m pcommon.Map, want map[string]string) bool {
	for k, v := range want {
		if got, ok := m.Get(k); !ok || got.AsString() != v {
			return false
		}
	}
	return true
}
