// SPDX-License-Identifier: Apache-2.0

//go:build backends

package backends

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

const judging = `
extensions:
  slo_catalog: {paths: [%[1]q]}
receivers:
  prometheus:
    config:
      scrape_configs: [{job_name: vllm, scrape_interval: 1s, http_sd_configs: [{url: "http://%[2]s/targets", refresh_interval: 5s}]}]
connectors:
  slo: {lateness: 1s}
exporters:
  file: {path: %[3]q, flush_interval: 100ms}
  nop:
service:
  extensions: [slo_catalog]
  pipelines:
    metrics: {receivers: [prometheus], exporters: [slo]}
    metrics/slo: {receivers: [slo], exporters: [nop]}
    logs/slo: {receivers: [slo], exporters: [file]}
  telemetry: {metrics: {level: none}}
`

// firing is the alert of the policy that is looked at.
const firing = `ALERTS{alertname="slo:violation", slo_policy="ttft-2x5s", alertstate="firing"}`

// violation is one, from its opening to its closing.
type violation struct {
	group        string // region and version
	opens, close time.Time
}

// Scenario: the demo's fleet, in which one version becomes slower in one region for half a minute, is scraped by the
// Collector with the slo connector and by Prometheus with the rules that `slo rules` writes of the same SLO file.
// Guarantees: both find the same promise broken, for the same group, once, not before it is, and at the same time: each still says so when
// the other one has begun to. By how much they differ is logged.
func TestTheRulesOfSLOGiveTheVerdictOfTheConnector(t *testing.T) {
	root := spawn.Root(t)
	dir := t.TempDir()
	// Rules spell keys as Prometheus does; with keys that need no spelling, both sides group by the same labels.
	underscored := strings.NewReplacer("cloud.region", "cloud_region", "model.version", "model_version", "device.type", "device_type",
		"../testdata", filepath.Join(root, "testdata"))
	copied := func(name string) string {
		data, err := os.ReadFile(filepath.Join(root, "demo", name))
		require.NoError(t, err)
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(underscored.Replace(string(data))), 0o600))
		return path
	}
	scenario, slos := copied("scenario.yaml"), copied("slo.yaml")
	rules := filepath.Join(dir, "rules.yaml")
	require.NoError(t, os.WriteFile(rules, []byte(run(t, filepath.Join(root, "bin", "slo"), "rules", "--interval", "1s", slos)), 0o600))

	control := spawn.FreeEndpoint(t)
	began := time.Now()
	keep(t, filepath.Join(root, "bin", "llmsim"), "-scenario", scenario, "-speed", "30", "-listen", "127.0.0.1:0", "-control", control)
	address := startPrometheusOf(t, fmt.Sprintf("{job_name: vllm, http_sd_configs: [{url: %q, refresh_interval: 5s}]}", "http://"+control+"/targets"), rules)
	events := filepath.Join(dir, "events.jsonl")
	c := spawn.Start(t, spawn.Options{Configs: []string{spawn.WriteConfig(t, fmt.Sprintf(judging, slos, control, events))}})
	c.WaitReady()

	require.Eventually(t, func() bool {
		mine := violations(t, events)
		return len(mine) > 0 && !mine[0].close.IsZero()
	}, arrives, 500*time.Millisecond, "the connector has seen no violation open and close")
	prometheus := store{ask: "http://" + address}
	require.Eventually(t, func() bool {
		now := time.Now()
		return len(prometheus.samples(t, firing, now)) == 0 && len(prometheus.samples(t, "last_over_time("+firing+"[5m])", now)) > 0
	}, arrives, 500*time.Millisecond, "Prometheus has not found it and let go")
	mine, theirs := violations(t, events), alerts(t, address, began)

	for i := range mine {
		t.Logf("connector:  %s broken from %s to %s", mine[i].group, mine[i].opens.Sub(began), mine[i].close.Sub(began))
	}
	for i := range theirs {
		t.Logf("prometheus: %s broken from %s to %s", theirs[i].group, theirs[i].opens.Sub(began), theirs[i].close.Sub(began))
	}
	require.Len(t, mine, 1)
	require.Len(t, theirs, 1)
	assert.Equal(t, "eu-west-1/v2", mine[0].group)
	assert.Equal(t, mine[0].group, theirs[0].group)
	for _, v := range []violation{mine[0], theirs[0]} {
		assert.Greater(t, v.opens.Sub(began), 20*time.Second, "as in the scenario")
	}
	assert.True(t, mine[0].opens.Before(theirs[0].close) && theirs[0].opens.Before(mine[0].close), "one has let go before the other one has begun")
	assert.Equal(t, 0, c.Stop())
}

// violations reads what the connector has written of the policy of time to first token.
func violations(t testing.TB, path string) (all []violation) {
	t.Helper()
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	lines := strings.Split(string(data), "\n")
	for _, line := range lines[:len(lines)-1] {
		ld, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs([]byte(line))
		require.NoError(t, err)
		for _, rl := range ld.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, r := range sl.LogRecords().All() {
					text := func(key string) string {
						v, _ := r.Attributes().Get(key)
						return v.AsString()
					}
					if text("slo.policy") != "ttft-2x5s" {
						continue
					}
					group := text("cloud_region") + "/" + text("model_version")
					if r.EventName() == "slo.violation.opened" {
						all = append(all, violation{group: group, opens: r.Timestamp().AsTime()})
						continue
					}
					for i := range all {
						if all[i].group == group && all[i].close.IsZero() {
							all[i].close = r.Timestamp().AsTime()
						}
					}
				}
			}
		}
	}
	return all
}

// alerts reads from Prometheus when the alert of the same policy was firing.
func alerts(t testing.TB, address string, since time.Time) (all []violation) {
	t.Helper()
	ask := url.Values{
		"query": {firing},
		"start": {fmt.Sprint(since.Unix())}, "end": {fmt.Sprint(time.Now().Unix())}, "step": {"1"},
	}
	resp, err := http.Get("http://" + address + "/api/v1/query_range?" + ask.Encode())
	require.NoError(t, err)
	defer resp.Body.Close()
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string `json:"metric"`
				Values [][2]any          `json:"values"`
			} `json:"result"`
		} `json:"data"`
	}
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&answer))
	at := func(value [2]any) time.Time { return time.Unix(int64(value[0].(float64)), 0) }
	for _, series := range answer.Data.Result {
		all = append(all, violation{
			group: series.Metric["cloud_region"] + "/" + series.Metric["model_version"],
			opens: at(series.Values[0]), close: at(series.Values[len(series.Values)-1]),
		})
	}
	return all
}
