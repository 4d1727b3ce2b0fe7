// SPDX-License-Identifier: Apache-2.0

//go:build backends

package backends

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// arrives is a deadline for what takes seconds on a quiet machine.
const arrives = 3 * time.Minute

// waitHTTP waits until a URL answers with 200.
func waitHTTP(t testing.TB, url string) {
	t.Helper()
	require.Eventually(t, func() bool {
		resp, err := http.Get(url)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, arrives, 100*time.Millisecond, "%s does not answer", url)
}

// fetch is the answer to a GET with some headers, in JSON.
func fetch(t testing.TB, url string, headers map[string]string, into any) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, url, nil)
	require.NoError(t, err)
	for k, v := range headers {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode, "%s: %s", url, body)
	require.NoError(t, json.Unmarshal(body, into), "%s", body)
}

// jaeger is a Jaeger that keeps the traces of each X-Scope-OrgID apart, and knows any. It takes OTLP by gRPC.
type jaeger struct {
	otlp string // host:port
	ask  string // URL
}

func startJaeger(t testing.TB, flags ...string) jaeger {
	t.Helper()
	j := jaeger{otlp: spawn.FreeEndpoint(t), ask: "http://" + spawn.FreeEndpoint(t)}
	admin := spawn.FreeEndpoint(t)
	// Unless told so, it sends spans of its own to port 4317.
	keep(t, "/usr/bin/env", append([]string{
		"OTEL_TRACES_SAMPLER=always_off", tool(t, "jaeger-all-in-one", "JAEGER_VERSION"),
		"--multi-tenancy.enabled=true", "--multi-tenancy.header=x-scope-orgid", "--log-level=warn", "--admin.http.host-port=" + admin,
		"--collector.otlp.enabled=true", "--collector.otlp.grpc.host-port=" + j.otlp, "--collector.otlp.http.host-port=" + spawn.FreeEndpoint(t),
		"--collector.grpc-server.host-port=" + spawn.FreeEndpoint(t), "--collector.http-server.host-port=" + spawn.FreeEndpoint(t),
		"--query.grpc-server.host-port=" + spawn.FreeEndpoint(t), "--query.http-server.host-port=" + strings.TrimPrefix(j.ask, "http://"),
	}, flags...)...)
	waitHTTP(t, "http://"+admin+"/")
	return j
}

// span is a span as Jaeger's API tells it.
type span struct {
	TraceID   string `json:"traceID"`
	SpanID    string `json:"spanID"`
	Operation string `json:"operationName"`
	Tags      []struct {
		Key   string `json:"key"`
		Value any    `json:"value"`
	} `json:"tags"`
}

// spans are all spans of a service that a tenant sees, raw: else the API leaves out those that are there twice.
func (j jaeger) spans(t testing.TB, tenant, service string) (all []span) {
	t.Helper()
	var answer struct {
		Data []struct {
			Spans []span `json:"spans"`
		} `json:"data"`
	}
	fetch(t, j.ask+"/api/traces?raw=true&limit=1000000&lookback=2d&service="+url.QueryEscape(service), map[string]string{"X-Scope-OrgID": tenant}, &answer)
	for _, trace := range answer.Data {
		all = append(all, trace.Spans...)
	}
	return all
}

// logStore is a VictoriaLogs behind what a Loki says of tenants: without X-Scope-OrgID there is no access, and each has data of
// its own. VictoriaLogs' tenants are numbers, so the front numbers the names.
type logStore struct {
	otlp   string // URL
	ask    string // URL, of VictoriaLogs itself
	server *process

	mu      sync.Mutex
	tenants []string
}

func startLogStore(t testing.TB) *logStore {
	t.Helper()
	address := spawn.FreeEndpoint(t)
	victoria := keep(t, tool(t, "victoria-logs", "VICTORIALOGS_VERSION"), "-httpListenAddr="+address, "-storageDataPath="+t.TempDir(), "-retentionPeriod=7d",
		"-loggerLevel=WARN")
	waitHTTP(t, "http://"+address+"/health")
	s := &logStore{ask: "http://" + address, server: victoria}
	to, err := url.Parse(s.ask)
	require.NoError(t, err)
	front := &httputil.ReverseProxy{ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.URL.Path = "/insert/opentelemetry/v1/logs"
		r.Out.Header.Set("AccountID", strconv.Itoa(s.account(r.In.Header.Get("X-Scope-OrgID"))))
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/otlp/v1/logs":
			http.NotFound(w, r)
		case len(r.Header.Values("X-Scope-OrgID")) != 1:
			http.Error(w, "no org id", http.StatusUnauthorized)
		default:
			front.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	s.otlp = server.URL + "/otlp"
	return s
}

// account is the number of a tenant.
func (s *logStore) account(tenant string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.tenants, tenant)
	if i < 0 {
		i = len(s.tenants)
		s.tenants = append(s.tenants, tenant)
	}
	return i + 1 // 0 is who says nothing
}

// heardOf reports whether something came as a tenant's.
func (s *logStore) heardOf(tenant string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.tenants, tenant)
}

// records are the log records of a tenant that a query finds, by field.
func (s *logStore) records(t testing.TB, tenant, query string) (all []map[string]string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, s.ask+"/select/logsql/query?limit=10000000&query="+url.QueryEscape(query), nil)
	require.NoError(t, err)
	req.Header.Set("AccountID", strconv.Itoa(s.account(tenant)))
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	for lines := json.NewDecoder(resp.Body); ; {
		record := map[string]string{}
		if err := lines.Decode(&record); err == io.EOF {
			return all
		}
		require.NoError(t, err)
		all = append(all, record)
	}
}

// startPrometheusForOTLP runs a Prometheus that takes OTLP.
func startPrometheusForOTLP(t testing.TB) store {
	t.Helper()
	address := spawn.FreeEndpoint(t)
	config := spawn.WriteConfig(t, `
storage: {tsdb: {out_of_order_time_window: 1d}}
otlp: {promote_resource_attributes: [service.instance.id, k8s.namespace.name]}
`)
	server := keep(t, prometheus(t), "--config.file="+config, "--web.listen-address="+address, "--storage.tsdb.path="+t.TempDir(),
		"--web.enable-otlp-receiver", "--web.enable-remote-write-receiver", "--enable-feature=exemplar-storage,otlp-deltatocumulative", "--log.level=warn")
	s := store{push: "http://" + address + "/api/v1/otlp/v1/metrics", ask: "http://" + address, server: server}
	require.Eventually(t, s.ready, arrives, 100*time.Millisecond, "Prometheus is not ready")
	return s
}

// sample is a series with its newest value.
type sample struct {
	labels map[string]string
	value  float64
}

// samples are what an instant query answers.
func (s store) samples(t testing.TB, query string, at time.Time) []sample {
	t.Helper()
	resp, err := http.Get(fmt.Sprintf("%s/api/v1/query?query=%s&time=%d", s.ask, url.QueryEscape(query), at.Unix()))
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode, query)
	return decoded(t, resp.Body)
}

// decoded is an answer of Prometheus' API that is an instant vector.
func decoded(t require.TestingT, body io.Reader) (all []sample) {
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string `json:"metric"`
				Value  [2]any            `json:"value"`
			} `json:"result"`
		} `json:"data"`
	}
	require.NoError(t, json.NewDecoder(body).Decode(&answer))
	for _, r := range answer.Data.Result {
		v, err := strconv.ParseFloat(r.Value[1].(string), 64)
		require.NoError(t, err)
		all = append(all, sample{r.Metric, v})
	}
	return all
}

// destinations are the servers that stand for Prometheus, Loki and Tempo.
type destinations struct {
	metrics store
	logs    *logStore
	traces  jaeger
}

func startDestinations(t testing.TB) destinations {
	t.Helper()
	return destinations{startPrometheusForOTLP(t), startLogStore(t), startJaeger(t)}
}

// gateway is a builtin:gateway before real servers.
type gateway struct {
	*spawn.Collector
	destinations
	otlp      string // URL
	grpc      string // host:port
	console   string // host:port
	telemetry string // URL
}

// startGateway runs builtin:gateway with further configurations. Its ports and its folder are moved, and it waits longer for an
// answer of Jaeger than a busy machine holds that up: it sends again what it does not hear of, and then that is there twice.
func startGateway(t testing.TB, to destinations, name, dir string, env []string, configs ...string) *gateway {
	t.Helper()
	http := spawn.FreeEndpoint(t)
	port := spawn.FreePort(t)
	g := &gateway{
		destinations: to, otlp: "http://" + http, grpc: spawn.FreeEndpoint(t), console: spawn.FreeEndpoint(t),
		telemetry: fmt.Sprintf("http://127.0.0.1:%d/metrics", port),
	}
	configs = append([]string{"builtin:gateway"}, configs...)
	for path, value := range map[string]string{
		"receivers::otlp::protocols::grpc::endpoint": g.grpc,
		"receivers::otlp::protocols::http::endpoint": http,
		"extensions::health_check::endpoint":         spawn.FreeEndpoint(t),
		"extensions::console::endpoint":              g.console,
		"exporters::otlp_grpc/traces::timeout":       "2m",
		"service::telemetry::metrics::readers":       fmt.Sprintf("[{pull: {exporter: {prometheus: {host: 127.0.0.1, port: %d}}}}]", port),
	} {
		configs = append(configs, fmt.Sprintf("yaml:%s: %s", path, value))
	}
	g.Collector = spawn.Start(t, spawn.Options{Configs: configs, Dir: dir, Env: append([]string{
		"HOSTNAME=" + name, "METRICS_ENDPOINT=" + to.metrics.ask + "/api/v1/otlp", "METRICS_QUERY=" + to.metrics.ask,
		"LOGS_ENDPOINT=" + to.logs.otlp, "TRACES_ENDPOINT=" + to.traces.otlp,
	}, env...)})
	g.WaitReady()
	return g
}

// counted is a metric that the gateway has of itself of a tenant, summed up over all else.
func (g *gateway) counted(t testing.TB, name, tenant string) float64 {
	t.Helper()
	return counted(t, g.telemetry, name, "tenant", tenant)
}

// counted is a metric that a Collector has of itself: the sum of the points that have a label's value, or of all for "".
func counted(t testing.TB, telemetry, name, label, value string) (sum float64) {
	t.Helper()
	resp, err := http.Get(telemetry)
	require.NoError(t, err)
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	require.NoError(t, err)
	for _, m := range families[name].GetMetric() {
		matches := label == ""
		for _, l := range m.Label {
			matches = matches || l.GetName() == label && l.GetValue() == value
		}
		if matches {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return sum
}
