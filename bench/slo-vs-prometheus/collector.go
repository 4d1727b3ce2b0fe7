// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// collectorScraping is the Collector that throws away what it scrapes.
func collectorScraping(r *run) (*process, error) { return r.startCollector("") }

// How the results leave the Collector. Log events of violations go by OTLP to a log backend in both cases.
const (
	byOTLP     = `otlp_http/results: {metrics_endpoint: "http://%s", compression: none}`
	byExporter = `prometheus: {endpoint: %q}`
)

// collectorPushing judges the promises and sends the results by OTLP, as to a Prometheus, a Mimir or the next Collector.
func collectorPushing(r *run) (*process, error) {
	backend, server, err := listen(r.receiveResults)
	if err != nil {
		return nil, err
	}
	r.atEnd(func() { _ = server.Close() })
	return r.startJudging("otlp_http/results", fmt.Sprintf(byOTLP, backend))
}

// collectorScraped judges the promises and shows the results on the prometheus exporter, which is scraped.
func collectorScraped(r *run) (*process, error) {
	results, err := freeAddress()
	if err != nil {
		return nil, err
	}
	p, err := r.startJudging("prometheus", fmt.Sprintf(byExporter, results))
	if err == nil {
		r.every(r.interval, func() { r.scrapeResults("http://" + results + "/metrics") })
	}
	return p, err
}

func (r *run) startJudging(exporter, exporterConfig string) (*process, error) {
	slos := filepath.Join(r.dir, "slo.yaml")
	if err := os.WriteFile(slos, []byte(catalog(r.promises, r.window)), 0o600); err != nil {
		return nil, err
	}
	backend, server, err := listen(r.alarms.logs)
	if err != nil {
		return nil, err
	}
	r.atEnd(func() { _ = server.Close() })
	return r.startCollector(fmt.Sprintf(judging, slos, exporterConfig, backend, exporter))
}

// A source's scrapes come in order, and each is heard as a whole: nothing is late, so nothing need be waited for. Whose an
// endpoint is says a label of its target, which the receiver puts on each point.
const judging = `
extensions:
  slo_catalog: {paths: [%q]}
connectors:
  slo: {lateness: 0s, tenant_from: ["point:tenant"]}
exporters:
  %s
  otlp_http/logs: {logs_endpoint: "http://%s", compression: none}
service:
  extensions: [slo_catalog]
  pipelines:
    metrics: {exporters: [slo]}
    metrics/slo: {receivers: [slo], exporters: [%s]}
    logs/slo: {receivers: [slo], exporters: [otlp_http/logs]}
`

const scraping = `
receivers:
  prometheus: {config: {scrape_configs: [%s]}}
exporters:
  nop:
service:
  pipelines:
    metrics: {receivers: [prometheus], exporters: [nop]}
  telemetry:
    metrics: {readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: %s}}}}]}
    logs: {level: warn}
`

// startCollector runs it with a further configuration on top.
func (r *run) startCollector(more string) (*process, error) {
	own, err := freeAddress()
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(own)
	if err != nil {
		return nil, err
	}
	r.api = "http://" + own + "/metrics"
	var args []string
	for name, text := range map[string]string{"1.yaml": fmt.Sprintf(scraping, r.scrapeConfig(), port), "2.yaml": more} {
		file := filepath.Join(r.dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return nil, err
		}
		args = append(args, "--config="+file)
	}
	if args[0] > args[1] { // what comes later wins
		args[0], args[1] = args[1], args[0]
	}
	p, err := start(r.dir, r.collector, args...)
	if err != nil {
		return nil, err
	}
	return p, p.waitReady(r.api)
}

// checkReceived proves that the Collector has heard every scrape.
func checkReceived(r *run) error {
	_, err := r.own("otelcol_receiver_accepted_metric_points")
	return err
}

// checkJudged proves that every promise to every tenant has a verdict, and that no point is lost from the books.
func checkJudged(r *run) error {
	if err := checkReceived(r); err != nil {
		return err
	}
	states := r.verdicts.count()
	if got, want := states["ok"]+states["violated"], r.tenants*len(r.promises); got != want {
		return fmt.Errorf("%d promises have a verdict, want %d: %v", got, want, states)
	}
	refused, err := r.own("otelcol_slo_points_refused")
	if err != nil {
		return err
	}
	for _, m := range refused {
		if reason := label(m, "reason"); reason != "baseline" && valueOf(m) > 0 {
			return fmt.Errorf("%v points were refused: %s", valueOf(m), reason)
		}
	}
	return nil
}

// own reads a metric of the Collector about itself.
func (r *run) own(name string) ([]*dto.Metric, error) {
	resp, err := http.Get(r.api)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	all, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		return nil, err
	}
	for full, family := range all {
		if strings.TrimSuffix(full, "_total") == name {
			return family.GetMetric(), nil
		}
	}
	return nil, fmt.Errorf("%s has no %s", r.api, name)
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

func valueOf(m *dto.Metric) float64 {
	return m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue()
}
