// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// prometheusScraping is Prometheus that stores what it scrapes, and no more.
func prometheusScraping(r *run) (*process, error) { return r.startPrometheus("") }

// prometheusWithSloth is Prometheus with the rules that Sloth writes of the promises.
func prometheusWithSloth(r *run) (*process, error) {
	specs, rules := filepath.Join(r.dir, "specs"), filepath.Join(r.dir, "rules")
	for _, dir := range []string{specs, rules} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
	}
	for t := range r.tenants {
		file := filepath.Join(specs, tenantName(t)+".yaml")
		if err := os.WriteFile(file, []byte(slothSpec(r.promises, tenantName(t))), 0o600); err != nil {
			return nil, err
		}
	}
	if err := toTheEnd(r.sloth, "generate", "--no-log", "--input", specs, "--out", rules); err != nil {
		return nil, err
	}
	if err := r.remember(); err != nil {
		return nil, err
	}
	return r.startPrometheus(filepath.Join(rules, "*.yaml"))
}

func toTheEnd(path string, args ...string) error {
	if out, err := exec.Command(path, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", filepath.Base(path), strings.Join(args, " "), err, out)
	}
	return nil
}

// remember gives Prometheus the past of the series that the fault is in, since burn rates over an hour and more would
// otherwise look at a few minutes only and rise as they do in no Prometheus that has been there for a day.
func (r *run) remember() error {
	if r.history == 0 {
		return nil
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# TYPE %s histogram\n", ttft)
	labels := fmt.Sprintf(`,instance=%q,job="vllm",tenant=%q`, r.endpoints.addresses[r.badTenant], tenantName(r.badTenant))
	for after := time.Duration(0); after < time.Since(r.endpoints.began); after += r.interval {
		at := fmt.Sprintf(" %.3f", float64(r.endpoints.began.Add(after).UnixMilli())/1e3)
		r.endpoints.histogram(&b, histograms[0], r.badTenant, r.badModel, after, fault{}, labels, at)
	}
	b.WriteString("# EOF\n")
	file := filepath.Join(r.dir, "history.txt")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		return err
	}
	return toTheEnd(r.promtool, "tsdb", "create-blocks-from", "openmetrics", "--quiet", file, filepath.Join(r.dir, "data"))
}

func (r *run) startPrometheus(rules string) (*process, error) {
	var c strings.Builder
	fmt.Fprintf(&c, "global: {scrape_interval: %s, evaluation_interval: %s}\n", r.interval, r.evaluation)
	if rules != "" {
		alertmanager, server, err := listen(r.alarms.alertmanager)
		if err != nil {
			return nil, err
		}
		r.atEnd(func() { _ = server.Close() })
		fmt.Fprintf(&c, "rule_files: [%q]\nalerting: {alertmanagers: [{static_configs: [{targets: [%q]}]}]}\n", rules, alertmanager)
	}
	fmt.Fprintf(&c, "scrape_configs: [%s]\n", r.scrapeConfig())
	config := filepath.Join(r.dir, "prometheus.yaml")
	if err := os.WriteFile(config, []byte(c.String()), 0o600); err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	r.api = "http://" + address
	p, err := start(r.dir, r.prometheus, "--config.file="+config, "--web.listen-address="+address,
		"--storage.tsdb.path="+filepath.Join(r.dir, "data"), "--log.level=warn")
	if err != nil {
		return nil, err
	}
	return p, p.waitReady(r.api + "/-/ready")
}

// scrapeConfig is the same for Prometheus and for the Collector's receiver, which takes Prometheus' own.
func (r *run) scrapeConfig() string {
	var targets []string
	for t, address := range r.endpoints.addresses {
		targets = append(targets, fmt.Sprintf("{targets: [%q], labels: {tenant: %s}}", address, tenantName(t)))
	}
	return fmt.Sprintf("{job_name: vllm, scrape_interval: %s, static_configs: [%s]}", r.interval, strings.Join(targets, ", "))
}

// checkScraped proves that every series of every endpoint is in Prometheus.
func checkScraped(r *run) error {
	return r.expect(`sum(scrape_samples_scraped)`, r.tenants*r.models*seriesPerModel())
}

// checkRules proves that every promise to every tenant is judged.
func checkRules(r *run) error {
	if err := checkScraped(r); err != nil {
		return err
	}
	// Where nothing is wrong 0.4 % or less of the requests is bad, so each has a number.
	return r.expect(`count(slo:sli_error:ratio_rate5m >= 0)`, r.tenants*len(r.promises))
}

func (r *run) expect(expr string, want int) error {
	resp, err := http.Get(r.api + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var answer struct {
		Data struct {
			Result []struct {
				Value [2]any `json:"value"`
			} `json:"result"`
		} `json:"data"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return err
	}
	if n := len(answer.Data.Result); n != 1 {
		return fmt.Errorf("%s: %d results", expr, n)
	}
	if got := answer.Data.Result[0].Value[1]; got != strconv.Itoa(want) {
		return fmt.Errorf("%s is %v, want %d", expr, got, want)
	}
	return nil
}
