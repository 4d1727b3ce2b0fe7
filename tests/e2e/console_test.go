// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// onALaptop is builtin:all-in-one beside an engine, with its ports moved.
type onALaptop struct {
	*spawn.Collector
	t                         *testing.T
	console, tsdb, prometheus string // URLs
}

// startOnALaptop starts it in a folder, beside engines with a comma between them.
func startOnALaptop(t *testing.T, dir, engines string) *onALaptop {
	t.Helper()
	console, tsdb, prometheus := spawn.FreeEndpoint(t), spawn.FreeEndpoint(t), spawn.FreeEndpoint(t)
	l := &onALaptop{t: t, console: "http://" + console, tsdb: "http://" + tsdb, prometheus: "http://" + prometheus + "/metrics"}
	l.Collector = spawn.Start(t, spawn.Options{Dir: dir, Env: []string{"LLM_METRICS_TARGETS=" + engines, "LLM_SCRAPE_INTERVAL=1s"}, Configs: []string{
		"builtin:all-in-one",
		"yaml:extensions::console: {endpoint: '" + console + "', query_url: '" + l.tsdb + "'}",
		"yaml:exporters::tsdb::endpoint: " + tsdb,
		"yaml:exporters::prometheus::endpoint: " + prometheus,
		"yaml:receivers::otlp::protocols::grpc::endpoint: " + spawn.FreeEndpoint(t),
		"yaml:receivers::otlp::protocols::http::endpoint: " + spawn.FreeEndpoint(t),
		"yaml:extensions::health_check::endpoint: " + spawn.FreeEndpoint(t),
		fmt.Sprintf("yaml:service::telemetry::metrics::readers: [{pull: {exporter: {prometheus: {host: localhost, port: %d}}}}]", spawn.FreePort(t)),
	}})
	l.WaitReady()
	return l
}

// startEngine simulates an engine, thirty times sped up.
func startEngine(t *testing.T, endpoint string, seed int) {
	t.Helper()
	sim := exec.Command(filepath.Join(spawn.Root(t), "bin", "llmsim"), "-speed", "30", "-rate", "2", "-seed", fmt.Sprint(seed),
		"-listen", endpoint, "-control", spawn.FreeEndpoint(t))
	require.NoError(t, sim.Start())
	t.Cleanup(func() {
		_ = sim.Process.Kill()
		_ = sim.Wait()
	})
}

// sample is a series and its value in an answer to an instant query.
type sample struct {
	Metric map[string]string `json:"metric"`
	Value  [2]any            `json:"value"`
}

// ask asks the database through the console, as its page does.
func (l *onALaptop) ask(query string, at time.Time) []sample {
	l.t.Helper()
	form := url.Values{"query": {query}, "time": {fmt.Sprintf("%.3f", float64(at.UnixMilli())/1000)}}
	var answer struct {
		Data struct {
			Result []sample `json:"result"`
		} `json:"data"`
	}
	require.NoError(l.t, json.Unmarshal([]byte(page(l.t, l.console+"/api/v1/query?"+form.Encode())), &answer))
	slices.SortFunc(answer.Data.Result, func(a, b sample) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return answer.Data.Result
}

// raw are the samples as they are stored, by series, as a query for a range finds them.
func (l *onALaptop) raw(query string, at time.Time) map[string][]string {
	l.t.Helper()
	form := url.Values{"query": {query}, "time": {fmt.Sprintf("%.3f", float64(at.UnixMilli())/1000)}}
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string `json:"metric"`
				Values [][2]any          `json:"values"`
			} `json:"result"`
		} `json:"data"`
	}
	require.NoError(l.t, json.Unmarshal([]byte(page(l.t, l.console+"/api/v1/query?"+form.Encode())), &answer))
	all := map[string][]string{}
	for _, s := range answer.Data.Result {
		for _, v := range s.Values {
			all[fmt.Sprint(s.Metric)] = append(all[fmt.Sprint(s.Metric)], fmt.Sprint(v))
		}
	}
	return all
}

// Scenario: builtin:all-in-one beside an engine is killed as a crash would, and started again in the same folder.
// Guarantees: what the page was shown before is shown as it was, and the series go on as the same ones.
func TestThePageShowsAfterACrashWhatItShowedBefore(t *testing.T) {
	parallel(t)
	engine, dir := spawn.FreeEndpoint(t), t.TempDir()
	startEngine(t, engine, 1)
	const queries = `{__name__=~"slo_objective|slo_state|vllm:time_to_first_token_seconds_(bucket|count)|vllm:request_success_total"}`

	l := startOnALaptop(t, dir, engine)
	require.Eventually(t, func() bool { return len(l.ask(`slo_objective{slo_id="llm:vllm:ttft:p95"}`, time.Now())) > 0 }, patience, 200*time.Millisecond)
	at := time.Now()
	require.Eventually(t, func() bool { // later samples follow
		return len(l.ask(fmt.Sprintf(`timestamp({__name__="vllm:request_success_total"}) > %d`, at.Unix()+1), time.Now())) > 0
	}, patience, 200*time.Millisecond)
	before := l.raw(queries+"[1h]", at)
	require.NotEmpty(t, before)
	l.Kill()

	restarted := time.Now()
	l = startOnALaptop(t, dir, engine)
	after := l.raw(queries+"[1h]", at)
	for series, samples := range before { // beside them may be what came between the question and the crash
		assert.Subset(t, after[series], samples, series)
	}
	require.Eventually(t, func() bool {
		return len(l.ask(fmt.Sprintf(`timestamp(slo_sli_events_total) > %d`, restarted.Unix()), time.Now())) > 0
	}, patience, 200*time.Millisecond)
	for _, s := range l.ask(`count by (slo_id, model_name) (slo_objective)`, time.Now()) {
		assert.Equal(t, "1", s.Value[1], "%v has one series, not one for each start", s.Metric)
	}
	assert.Zero(t, l.Stop())
}

// Guarantees: a page of another site, whose name was made to point here, reaches neither the console nor the database.
func TestOtherSitesReachNeitherPageNorDatabase(t *testing.T) {
	parallel(t)
	l := startOnALaptop(t, t.TempDir(), spawn.FreeEndpoint(t))
	for _, address := range []string{l.console + "/", l.console + "/api/v1/query?query=up", l.tsdb + "/api/v1/query?query=up"} {
		req, err := http.NewRequest(http.MethodGet, address, nil)
		require.NoError(t, err)
		req.Host = "evil.example"
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, http.StatusForbidden, resp.StatusCode, address)
	}
	assert.Zero(t, l.Stop())
}
