// SPDX-License-Identifier: Apache-2.0

//go:build backends

package backends

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// keeper is a Collector that takes OTLP for its tsdb exporter, and tells of itself.
type keeper struct {
	*spawn.Collector
	store
	directory string
	telemetry string
}

// keeping starts one whose tsdb exporter has further settings, as in "max_series: 5, retention: 1d".
func keeping(t testing.TB, directory, settings string) *keeper {
	t.Helper()
	k := startKeeping(t, directory, settings)
	k.WaitReady()
	return k
}

func startKeeping(t testing.TB, directory, settings string) *keeper {
	t.Helper()
	push, ask, port := spawn.FreeEndpoint(t), spawn.FreeEndpoint(t), spawn.FreePort(t)
	c := spawn.Start(t, spawn.Options{Configs: []string{spawn.WriteConfig(t, fmt.Sprintf(`
receivers:
  otlp: {protocols: {http: {endpoint: %q}}}
exporters:
  tsdb: {endpoint: %q, directory: %q, %s}
service:
  pipelines:
    metrics: {receivers: [otlp], exporters: [tsdb]}
  telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: %d}}}}]}}
`, push, ask, directory, settings, port))}})
	return &keeper{c, store{push: "http://" + push + "/v1/metrics", ask: "http://" + ask}, directory, fmt.Sprintf("http://127.0.0.1:%d/metrics", port)}
}

// offer sends a batch and returns the status of the answer, 0 for none.
func (k *keeper) offer(t testing.TB, md pmetric.Metrics) (status int, text string) {
	t.Helper()
	body, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
	require.NoError(t, err)
	resp, err := http.Post(k.push, "application/x-protobuf", bytes.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(resp.Body); err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, strings.ToValidUTF8(answer.String(), "")
}

// counted is a metric that it has of itself: the sum of the points that have a label's value, or of all for "".
func (k *keeper) counted(t testing.TB, name, label, value string) float64 {
	t.Helper()
	return counted(t, k.telemetry, name, label, value)
}

// number is the value of a query that has one; NaN is none.
func (k *keeper) number(t testing.TB, query string, at time.Time) (value float64, there bool) {
	t.Helper()
	a, raw := k.answer(t, "query", url.Values{"query": {query}, "time": {fmt.Sprint(at.Unix())}})
	require.Equal(t, "success", a.Status, raw)
	list := a.Data.(map[string]any)["result"].([]any)
	if len(list) == 0 {
		return 0, false
	}
	require.Len(t, list, 1, raw)
	value, err := strconv.ParseFloat(list[0].(map[string]any)["value"].([]any)[1].(string), 64)
	require.NoError(t, err)
	return value, true
}

// onDisk lets the Collectors that this test starts run where a directory is a file system of its own, with mount's options. It ends
// with the Collector; until then it is seen from outside by the path that inside returns.
func onDisk(t testing.TB, options string) (directory string, inside func(pid int) string) {
	t.Helper()
	directory = t.TempDir()
	wrapper := filepath.Join(t.TempDir(), "on-a-disk")
	script := "#!/bin/sh\nexec unshare -rm sh -c 'mount -t tmpfs -o " + options + " tmpfs " + directory + " && exec " + spawn.Binary(t) + " \"$@\"' sh \"$@\"\n"
	require.NoError(t, os.WriteFile(wrapper, []byte(script), 0o700))
	t.Setenv("OTELCOL_LLM_BIN", wrapper)
	return directory, func(pid int) string { return fmt.Sprintf("/proc/%d/root%s", pid, directory) }
}
