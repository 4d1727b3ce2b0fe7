// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// estate is a backend with several tenants, of which it hears by X-Scope-OrgID only: metrics and logs by HTTP, traces by gRPC.
type estate struct {
	ptraceotlp.UnimplementedGRPCServer
	http, grpc string

	mu sync.Mutex
	// taken are how often each item came, by its tenant and "signal/id".
	taken map[string]map[string]int
	sick  func(w http.ResponseWriter) // what "sick" is answered with; nil when it is well
}

func newEstate(t testing.TB) *estate {
	t.Helper()
	e := &estate{taken: map[string]map[string]int{}}
	mux := http.NewServeMux()
	handle := func(path string, take func(tenant string, body []byte) error) {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			tenant := strings.Join(r.Header.Values("X-Scope-OrgID"), ",")
			e.mu.Lock()
			sick := e.sick
			e.mu.Unlock()
			if tenant == "sick" && sick != nil {
				sick(w)
				return
			}
			assert.NoError(t, take(tenant, body))
			w.Header().Set("Content-Type", "application/x-protobuf")
		})
	}
	handle("/v1/metrics", func(tenant string, body []byte) error {
		req := pmetricotlp.NewExportRequest()
		err := req.UnmarshalProto(body)
		for _, rm := range req.Metrics().ResourceMetrics().All() {
			for _, p := range rm.ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().All() {
				e.note(tenant, "metrics", rm.Resource(), p.Attributes())
			}
		}
		return err
	})
	handle("/v1/logs", func(tenant string, body []byte) error {
		req := plogotlp.NewExportRequest()
		err := req.UnmarshalProto(body)
		for _, rl := range req.Logs().ResourceLogs().All() {
			for _, r := range rl.ScopeLogs().At(0).LogRecords().All() {
				e.note(tenant, "logs", rl.Resource(), r.Attributes())
			}
		}
		return err
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	e.http = server.URL

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	calls := grpc.NewServer()
	ptraceotlp.RegisterGRPCServer(calls, e)
	go func() { _ = calls.Serve(listener) }()
	t.Cleanup(calls.Stop)
	e.grpc = listener.Addr().String()
	return e
}

// Export takes traces.
func (e *estate) Export(ctx context.Context, req ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	tenant := strings.Join(md.Get("x-scope-orgid"), ",")
	e.mu.Lock()
	sick := e.sick
	e.mu.Unlock()
	if tenant == "sick" && sick != nil {
		return ptraceotlp.NewExportResponse(), status.Error(codes.Unavailable, "sick")
	}
	for _, rs := range req.Traces().ResourceSpans().All() {
		for _, s := range rs.ScopeSpans().At(0).Spans().All() {
			e.note(tenant, "traces", rs.Resource(), s.Attributes())
		}
	}
	return ptraceotlp.NewExportResponse(), nil
}

// note takes an item. One whose own resource says that it is another's is noted as nobody's.
func (e *estate) note(tenant, signal string, resource pcommon.Resource, attrs pcommon.Map) {
	e.mu.Lock()
	defer e.mu.Unlock()
	id, _ := attrs.Get("id")
	says, _ := resource.Attributes().Get("tenant")
	was, _ := resource.Attributes().Get("k8s.namespace.name")
	if says.Str() != tenant || was.Str() != tenant {
		tenant = fmt.Sprintf("%s, which is %s's by its tenant and %s's by its namespace", tenant, says.Str(), was.Str())
	}
	if e.taken[tenant] == nil {
		e.taken[tenant] = map[string]int{}
	}
	e.taken[tenant][signal+"/"+strconv.FormatInt(id.Int(), 10)]++
}

func (e *estate) fall(sick func(http.ResponseWriter)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sick = sick
}

// items are how many of a tenant's came, and how many of them more than once.
func (e *estate) items(tenant string) (n, twice int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, times := range e.taken[tenant] {
		n++
		if times > 1 {
			twice++
		}
	}
	return n, twice
}

// gateway is a Collector between clients and an estate.
type gateway struct {
	*spawn.Collector
	t          testing.TB
	http, grpc string
}

// startGateway starts one that keeps its queues in a folder. settings are of tenant_routing.
func startGateway(t testing.TB, e *estate, dir, settings string) *gateway {
	t.Helper()
	g := &gateway{t: t, http: spawn.FreeEndpoint(t), grpc: spawn.FreeEndpoint(t)}
	config := spawn.WriteConfig(t, fmt.Sprintf(`
extensions:
  tenant_headers:
  file_storage: {directory: %q}
receivers:
  otlp:
    protocols:
      http: {endpoint: %q, include_metadata: true}
      grpc: {endpoint: %q, include_metadata: true}
connectors:
  tenant_routing:
    sending_queue: {storage: file_storage}
    retry_on_failure: {initial_interval: 50ms, max_interval: 200ms}
    drain_timeout: 1s
%s
exporters:
  otlp_http:
    endpoint: %q
    timeout: 500ms
    compression: none
    auth: {authenticator: tenant_headers}
    sending_queue: {enabled: false}
    retry_on_failure: {enabled: false}
  otlp_grpc:
    endpoint: %q
    tls: {insecure: true}
    compression: none
    auth: {authenticator: tenant_headers}
    sending_queue: {enabled: false}
    retry_on_failure: {enabled: false}
service:
  extensions: [tenant_headers, file_storage]
  pipelines:
    metrics: {receivers: [otlp], exporters: [tenant_routing]}
    logs: {receivers: [otlp], exporters: [tenant_routing]}
    traces: {receivers: [otlp], exporters: [tenant_routing]}
    metrics/tenants: {receivers: [tenant_routing], exporters: [otlp_http]}
    logs/tenants: {receivers: [tenant_routing], exporters: [otlp_http]}
    traces/tenants: {receivers: [tenant_routing], exporters: [otlp_grpc]}
  telemetry: {metrics: {level: none}}
`, dir, g.http, g.grpc, settings, e.http, e.grpc))
	g.Collector = spawn.Start(t, spawn.Options{Configs: []string{config}})
	g.WaitReady()
	return g
}

// post sends a request by HTTP, with a header by which the client would choose another's tenant, and secrets.
func (g *gateway) post(path string, body []byte) *http.Response {
	g.t.Helper()
	req, err := http.NewRequest(http.MethodPost, "http://"+g.http+path, bytes.NewReader(body))
	require.NoError(g.t, err)
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("X-Scope-OrgID", "victim")
	req.Header.Set("Authorization", "Bearer s3cr3t")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(g.t, err)
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(g.t, err)
	require.NoError(g.t, resp.Body.Close())
	return resp
}

// gauge are metrics with a point for each of tenants.
func gauge(id int, tenants ...string) pmetric.Metrics {
	md := pmetric.NewMetrics()
	for _, tenant := range tenants {
		rm := md.ResourceMetrics().AppendEmpty()
		rm.Resource().Attributes().PutStr("k8s.namespace.name", tenant)
		m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName("requests")
		m.SetEmptyGauge().DataPoints().AppendEmpty().Attributes().PutInt("id", int64(id))
	}
	return md
}

func (g *gateway) sendMetrics(id int, tenants ...string) *http.Response {
	g.t.Helper()
	body, err := pmetricotlp.NewExportRequestFromMetrics(gauge(id, tenants...)).MarshalProto()
	require.NoError(g.t, err)
	return g.post("/v1/metrics", body)
}

func (g *gateway) sendLogs(id int, tenants ...string) *http.Response {
	g.t.Helper()
	ld := plog.NewLogs()
	for _, tenant := range tenants {
		rl := ld.ResourceLogs().AppendEmpty()
		rl.Resource().Attributes().PutStr("k8s.namespace.name", tenant)
		rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Attributes().PutInt("id", int64(id))
	}
	body, err := plogotlp.NewExportRequestFromLogs(ld).MarshalProto()
	require.NoError(g.t, err)
	return g.post("/v1/logs", body)
}

func (g *gateway) sendTraces(id int, tenants ...string) *http.Response {
	g.t.Helper()
	td := ptrace.NewTraces()
	for _, tenant := range tenants {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("k8s.namespace.name", tenant)
		rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty().Attributes().PutInt("id", int64(id))
	}
	body, err := ptraceotlp.NewExportRequestFromTraces(td).MarshalProto()
	require.NoError(g.t, err)
	return g.post("/v1/traces", body)
}

// Scenario: three tenants send all signals in the same requests; the backend fails for one of them, in each way there is; the
// gateway is killed with SIGKILL and started again while the backend still fails, and then the backend works, while nobody sends
// anything more. Guarantees: what the others send arrives at once, what the one sent arrives in the end, nothing arrives under
// another tenant or is sent again but for what was on its way when the process was killed, and no secret of a client is on the disk.
func TestATenantsQueueOutlivesAKill(t *testing.T) {
	t.Parallel()
	const requests = 30
	for name, sick := range map[string]func(http.ResponseWriter){
		"answers 429": func(w http.ResponseWriter) { w.WriteHeader(http.StatusTooManyRequests) },
		"answers 500": func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) },
		"hangs":       func(http.ResponseWriter) { time.Sleep(2 * time.Second) },
		"is gone": func(w http.ResponseWriter) {
			if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
				_ = conn.Close()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			e, dir := newEstate(t), t.TempDir()
			e.fall(sick)
			g := startGateway(t, e, dir, "")
			began := time.Now()
			for id := range requests {
				for _, send := range []func(int, ...string) *http.Response{g.sendMetrics, g.sendLogs, g.sendTraces} {
					require.Equal(t, http.StatusOK, send(id, "well", "sick", "fine").StatusCode)
				}
			}
			for _, tenant := range []string{"well", "fine"} {
				require.Eventually(t, func() bool { n, _ := e.items(tenant); return n == 3*requests }, 10*time.Second, 10*time.Millisecond)
			}
			t.Logf("what the others sent was there after %s", time.Since(began))
			n, _ := e.items("sick")
			require.Zero(t, n)
			g.Kill()
			startGateway(t, e, dir, "").Kill() // a crash at once
			g = startGateway(t, e, dir, "")
			e.fall(nil)
			require.Eventually(t, func() bool { n, _ := e.items("sick"); return n == 3*requests }, 20*time.Second, 10*time.Millisecond)
			assert.Zero(t, g.Stop())
			for _, tenant := range []string{"well", "fine", "sick"} {
				n, twice := e.items(tenant)
				assert.Equal(t, 3*requests, n)
				assert.LessOrEqual(t, twice, 3*4, "%s: no more than the consumers of its queues were sending when it was killed", tenant)
			}
			assert.Len(t, e.taken, 3, "nothing came as another's")
			assertNowhere(t, dir, "s3cr3t", "victim")
		})
	}
}

// Guarantees: a gateway whose destination hangs ends in time, and what waited is sent by the next one.
func TestAGatewayEndsInTimeWhileADestinationHangs(t *testing.T) {
	parallel(t)
	const requests = 20
	e, dir := newEstate(t), t.TempDir()
	e.fall(func(http.ResponseWriter) { time.Sleep(2 * time.Second) })
	g := startGateway(t, e, dir, "")
	for id := range requests {
		require.Equal(t, http.StatusOK, g.sendMetrics(id, "sick").StatusCode)
	}
	began := time.Now()
	assert.Zero(t, g.Stop())
	assert.Less(t, time.Since(began), 5*time.Second, "drain_timeout is 1s")
	e.fall(nil)
	startGateway(t, e, dir, "")
	require.Eventually(t, func() bool { n, _ := e.items("sick"); return n == requests }, 10*time.Second, 10*time.Millisecond)
}

// assertNowhere proves that no file of a folder has one of the texts in it.
func assertNowhere(t testing.TB, dir string, texts ...string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		data, err := os.ReadFile(f)
		require.NoError(t, err)
		for _, text := range texts {
			assert.NotContains(t, string(data), text, f)
		}
	}
}
