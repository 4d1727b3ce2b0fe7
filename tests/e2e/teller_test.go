// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	dto "github.com/prometheus/client_model/go"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// teller is a Collector that judges OTLP by SLO files and tells its results to an OTLP server, without a queue in between:
// what it was told is told on or is not. It may be killed and started again.
type teller struct {
	*spawn.Collector
	t       *testing.T
	config  string
	otlp    string // URL
	own     string // URL of its own telemetry
	storage string // directory
}

const tellerConfig = `
extensions:
  slo_catalog: {paths: [%[1]q]}
  file_storage: {directory: %[2]q}
receivers:
  otlp: {protocols: {http: {endpoint: %[3]q}}}
connectors:
  slo: {burn_rates: [], %[4]s}
exporters:
  otlp_http: {endpoint: %[5]q, compression: none, sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}
service:
  extensions: [slo_catalog, file_storage]
  pipelines:
    metrics: {receivers: [otlp], exporters: [slo]}
    metrics/slo: {receivers: [slo], exporters: [otlp_http]}
%[6]s
  telemetry:
    metrics:
      readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: %[7]d}}}}]
`

const (
	// brisk settings close a window with the first point beyond it, and by nothing else, however long that takes to come.
	brisk = "lateness: 0s, idle_timeout: 1h"
	// kept are the settings of a connector whose state outlives it.
	kept = brisk + ", storage: file_storage, checkpoint_interval: 1s"
)

// startTeller starts a teller with some settings of the connector. Where it tells no events, it has no pipeline for them.
func startTeller(t *testing.T, slos, settings, to string, events bool) *teller {
	t.Helper()
	dir := t.TempDir()
	file, storage := filepath.Join(dir, "slo.yaml"), filepath.Join(dir, "storage")
	require.NoError(t, os.WriteFile(file, []byte(slos), 0o600))
	require.NoError(t, os.Mkdir(storage, 0o700))
	logs := ""
	if events {
		logs = "    logs/slo: {receivers: [slo], exporters: [otlp_http]}"
	}
	otlp, port := spawn.FreeEndpoint(t), spawn.FreePort(t)
	x := &teller{
		t: t, otlp: "http://" + otlp, own: fmt.Sprintf("http://127.0.0.1:%d/metrics", port), storage: storage,
		config: spawn.WriteConfig(t, fmt.Sprintf(tellerConfig, file, storage, otlp, settings, to, logs, port)),
	}
	x.start()
	return x
}

// start starts it, again after a Kill or Stop.
func (x *teller) start() {
	x.t.Helper()
	x.Collector = spawn.Start(x.t, spawn.Options{Configs: []string{x.config}})
	x.WaitReady()
}

// send sends one request, which must be taken.
func (x *teller) send(md pmetric.Metrics) {
	x.t.Helper()
	require.NoError(x.t, post(x.t.Context(), x.otlp, md))
}

// post sends one request. An error leaves open whether it was taken.
func post(ctx context.Context, otlp string, md pmetric.Metrics) error {
	body, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, otlp+"/v1/metrics", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, answer)
	}
	return err
}

// telemetry is what it says of itself, by metric.
func (x *teller) telemetry() map[string]*dto.MetricFamily {
	x.t.Helper()
	resp, err := http.Get(x.own)
	require.NoError(x.t, err)
	defer resp.Body.Close()
	return families(x.t, resp.Body)
}

// saves are how many checkpoints a component has written in this run; there is false where it cannot be asked, as while it is started.
func (x *teller) saves(component string) (n uint64, there bool) {
	resp, err := http.Get(x.own)
	if err != nil {
		return 0, false
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	all, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil { // it was killed while it answered
		return 0, false
	}
	for name, f := range all {
		if strings.HasPrefix(name, "otelcol_"+component+"_checkpoint_duration") {
			n = f.GetMetric()[0].GetHistogram().GetSampleCount()
		}
	}
	return n, true
}

// saved waits until both generations of the checkpoint hold all that is known now.
func (x *teller) saved(component string) {
	x.t.Helper()
	before, there := x.saves(component)
	require.True(x.t, there)
	require.Eventually(x.t, func() bool {
		n, _ := x.saves(component)
		return n >= before+3 // the first may have begun before
	}, patience, 50*time.Millisecond, "no checkpoint is written")
}

// checkpoints describes the checkpoints of this run.
func (x *teller) checkpoints() string {
	own := x.telemetry()
	var text []string
	for name, f := range own {
		m := f.GetMetric()[0]
		switch {
		case strings.HasPrefix(name, "otelcol_slo_checkpoint_size"):
			text = append(text, fmt.Sprintf("the last one wrote %g bytes", m.GetGauge().GetValue()))
		case strings.HasPrefix(name, "otelcol_slo_checkpoint_duration"):
			h := m.GetHistogram()
			text = append(text, fmt.Sprintf("%d took %.2f ms each", h.GetSampleCount(), 1000*h.GetSampleSum()/float64(h.GetSampleCount())))
		}
	}
	slices.Sort(text)
	return strings.Join(text, ", ")
}

// refused is how much was refused, by reason.
func refused(x *teller) map[string]float64 {
	n := map[string]float64{}
	for name, f := range x.telemetry() {
		if !strings.HasPrefix(name, "otelcol_slo_points_refused") {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "reason" {
					n[l.GetValue()] += m.GetCounter().GetValue()
				}
			}
		}
	}
	return n
}
