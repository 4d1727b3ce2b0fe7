// SPDX-License-Identifier: Apache-2.0

//go:build backends

package backends

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// documented is an example of docs/destinations.md by the name in its first line, with some texts replaced.
func documented(t testing.TB, name string, replace ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(spawn.Root(t), "docs", "destinations.md"))
	require.NoError(t, err)
	m := regexp.MustCompile("(?s)```yaml\n# " + regexp.QuoteMeta(name) + "(?:, over [^\n]*)?\n(.*?)```").FindSubmatch(content)
	require.NotNil(t, m, "docs/destinations.md has no %s", name)
	for i := 0; i < len(replace); i += 2 {
		require.Contains(t, string(m[1]), replace[i], name)
	}
	return strings.NewReplacer(replace...).Replace(string(m[1]))
}

// certificates writes those of /etc/otelcol-llm for 127.0.0.1, which httptest has, to a folder.
func certificates(t testing.TB) (dir string, server *tls.Config, client *http.Client) {
	t.Helper()
	dir = t.TempDir()
	issued := newCertificate(t)
	for name, data := range map[string][]byte{"ca.crt": issued.certificate, "tls.crt": issued.certificate, "tls.key": issued.key} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	pair, err := tls.X509KeyPair(issued.certificate, issued.key)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(issued.certificate))
	return dir, &tls.Config{Certificates: []tls.Certificate{pair}}, &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
}

// front is a proxy with TLS before a server, which notes who asked for what.
type front struct {
	url string

	mu    sync.Mutex
	asked map[string]bool // path, tenant, authorization
}

func startFront(t testing.TB, server *tls.Config, to string, path func(string) string) *front {
	t.Helper()
	target, err := url.Parse(to)
	require.NoError(t, err)
	f := &front{asked: map[string]bool{}}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		f.mu.Lock()
		f.asked[fmt.Sprint(r.In.URL.Path, " ", r.In.Header["X-Scope-Orgid"], " ", r.In.Header.Get("Authorization"))] = true
		f.mu.Unlock()
		r.SetURL(target)
		r.Out.URL.Path = path(r.In.URL.Path)
	}}
	s := httptest.NewUnstartedServer(proxy)
	s.TLS = server
	s.StartTLS()
	t.Cleanup(s.Close)
	f.url = s.URL
	return f
}

func (f *front) heard() map[string]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.asked)
}

// startSecurePrometheus runs a Prometheus that asks for TLS and a password.
func startSecurePrometheus(t testing.TB, dir, scrape string) (address string) {
	t.Helper()
	const hash = "$2a$04$yzfzKeB3RxOTi/LNvJvPFOf1V1V1H8Vr4U2nTV8bFpduobV9JIxwa" // of "secret", by bcrypt
	web := spawn.WriteConfig(t, fmt.Sprintf("tls_server_config: {cert_file: %[1]s/tls.crt, key_file: %[1]s/tls.key}\nbasic_auth_users: {otelcol-llm: %[2]q}\n", dir, hash))
	config := spawn.WriteConfig(t, "global: {scrape_interval: 1s}\n"+scrape)
	run(t, promtool(t), "check", "config", config)
	address = spawn.FreeEndpoint(t)
	keep(t, prometheus(t), "--config.file="+config, "--web.config.file="+web, "--web.listen-address="+address, "--storage.tsdb.path="+t.TempDir(),
		"--web.enable-otlp-receiver", "--web.enable-remote-write-receiver", "--enable-feature=exemplar-storage,otlp-deltatocumulative", "--log.level=warn")
	return address
}

// Guarantees: each documented way to Prometheus, with TLS and a password, brings the points of two tenants who run a service of the same
// name, each as the tenant's own.
func TestDocumentedWaysToPrometheus(t *testing.T) {
	t.Setenv("PROMETHEUS_PASSWORD", "secret")
	t.Setenv("SCRAPE_PASSWORD", "secret")
	dir, _, client := certificates(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "scrape-password"), []byte("secret"), 0o600))
	nowhere := destinations{store{ask: "http://" + spawn.FreeEndpoint(t)}, &logStore{otlp: "http://" + spawn.FreeEndpoint(t)}, jaeger{otlp: spawn.FreeEndpoint(t)}}
	server := documented(t, "prometheus.yml")
	for _, name := range []string{"prometheus-otlp.yaml", "prometheus-remote-write.yaml", "prometheus-scrape.yaml"} {
		t.Run(name, func(t *testing.T) {
			var address, config string
			if name == "prometheus-scrape.yaml" {
				exporter := spawn.FreeEndpoint(t)
				config = documented(t, name, "0.0.0.0:9464", exporter, "/etc/otelcol-llm", dir)
				address = startSecurePrometheus(t, dir, documented(t, "prometheus-scraping.yml", "gateway.example.com:9464", exporter, "/etc/prometheus", dir))
			} else {
				address = startSecurePrometheus(t, dir, server)
				config = documented(t, name, "prometheus.example.com:9090", address, "/etc/otelcol-llm", dir)
			}
			g := startGateway(t, nowhere, "gateway-0", "", nil, spawn.WriteConfig(t, config))
			c, at := claiming{t, g.otlp, ""}, time.Now()
			c.points([]string{"acme", "beta"}, numbers{0, 5}, at)
			require.EventuallyWithT(t, func(ct *assert.CollectT) {
				req, err := http.NewRequest(http.MethodGet, "https://"+address+"/api/v1/query?query=item", nil)
				require.NoError(ct, err)
				req.SetBasicAuth("otelcol-llm", "secret")
				resp, err := client.Do(req)
				require.NoError(ct, err)
				defer resp.Body.Close()
				got := map[string]int{}
				for _, s := range decoded(ct, resp.Body) {
					got[s.labels["tenant"]]++
					assert.Equal(ct, "batch", s.labels["exported_job"])
					assert.Equal(ct, "chat", s.labels["job"])
				}
				assert.Equal(ct, map[string]int{"acme": 5, "beta": 5}, got)
			}, arrives, 500*time.Millisecond)
		})
	}
}

// Scenario: a Prometheus behind what a Mimir asks for takes Mimir's part.
// Guarantees: each documented way to Mimir brings every tenant's points under the tenant's id, and with the password, over TLS.
func TestDocumentedWaysToMimir(t *testing.T) {
	t.Setenv("MIMIR_CREDENTIALS", "dXNlcjpzZWNyZXQ=")
	dir, server, _ := certificates(t)
	for name, paths := range map[string][2]string{
		"mimir-otlp.yaml":         {"/otlp/v1/metrics", "/api/v1/otlp/v1/metrics"},
		"mimir-remote-write.yaml": {"/api/v1/push", "/api/v1/write"},
	} {
		t.Run(name, func(t *testing.T) {
			prometheus := startPrometheusForOTLP(t)
			mimir := startFront(t, server, prometheus.ask, func(string) string { return paths[1] })
			to := destinations{prometheus, &logStore{otlp: "http://" + spawn.FreeEndpoint(t)}, jaeger{otlp: spawn.FreeEndpoint(t)}}
			g := startGateway(t, to, "gateway-0", "", nil, spawn.WriteConfig(t, documented(t, name, "https://mimir.example.com", mimir.url, "/etc/otelcol-llm", dir)))
			c, at := claiming{t, g.otlp, ""}, time.Now()
			c.points([]string{"acme", "beta"}, numbers{0, 5}, at)
			for _, tenant := range []string{"acme", "beta"} {
				require.Eventually(t, func() bool {
					return len(prometheus.samples(t, fmt.Sprintf("item{tenant=%q}", tenant), time.Now())) == 5
				}, arrives, 500*time.Millisecond)
				assert.True(t, mimir.heard()[fmt.Sprintf("%s [%s] Basic dXNlcjpzZWNyZXQ=", paths[0], tenant)], "%v", mimir.heard())
			}
		})
	}
}

// Guarantees: the documented ways to Loki and Tempo bring each tenant's records and spans, over TLS.
func TestDocumentedWaysToLokiAndTempo(t *testing.T) {
	t.Setenv("LOKI_CREDENTIALS", "dXNlcjpzZWNyZXQ=")
	t.Setenv("TEMPO_TOKEN", "secret")
	dir, server, _ := certificates(t)
	logs, traces := startLogStore(t), startJaeger(t, "--collector.otlp.grpc.tls.enabled=true", "--collector.otlp.grpc.tls.cert="+dir+"/tls.crt",
		"--collector.otlp.grpc.tls.key="+dir+"/tls.key", "--collector.otlp.grpc.tls.client-ca="+dir+"/ca.crt")
	loki := startFront(t, server, strings.TrimSuffix(logs.otlp, "/otlp"), func(path string) string { return path })
	g := startGateway(t, destinations{store{ask: "http://" + spawn.FreeEndpoint(t)}, logs, traces}, "gateway-0", "", nil,
		spawn.WriteConfig(t, documented(t, "loki.yaml", "https://loki.example.com", loki.url, "/etc/otelcol-llm", dir)),
		spawn.WriteConfig(t, documented(t, "tempo.yaml", "tempo.example.com:4317", traces.otlp, "/etc/otelcol-llm", dir)))
	c, at := claiming{t, g.otlp, ""}, time.Now()
	c.spans([]string{"acme", "beta"}, numbers{0, 5}, at)
	c.records([]string{"acme", "beta"}, numbers{0, 5}, at)
	for _, tenant := range []string{"acme", "beta"} {
		require.Eventually(t, func() bool {
			return len(g.recordsOf(t, tenant)) == 5 && len(g.spansOf(t, tenant)) == 5
		}, arrives, 500*time.Millisecond)
		assert.True(t, loki.heard()[fmt.Sprintf("/otlp/v1/logs [%s] Basic dXNlcjpzZWNyZXQ=", tenant)], "%v", loki.heard())
	}
}
