// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-llm/otelcol-llm/extension/consoleextension/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/lifecycletest"
)

// running is a console that a test talks to.
type running struct {
	*console
	url string
}

// start starts a console in front of a fake Prometheus; change changes its configuration.
func start(t *testing.T, tel *componenttest.Telemetry, prometheus http.HandlerFunc, change func(*Config)) running {
	t.Helper()
	backend := httptest.NewServer(prometheus)
	t.Cleanup(backend.Close)
	cfg := createDefaultConfig().(*Config)
	cfg.NetAddr.Endpoint, cfg.QueryURL = "localhost:0", backend.URL
	if change != nil {
		change(cfg)
	}
	set := extensiontest.NewNopSettings(metadata.Type)
	if tel != nil {
		set.TelemetrySettings = tel.NewTelemetrySettings()
	}
	return begin(t, set, cfg)
}

func begin(t *testing.T, set extension.Settings, cfg *Config) running {
	t.Helper()
	require.NoError(t, cfg.Validate())
	ext, err := NewFactory().Create(t.Context(), set, cfg)
	require.NoError(t, err)
	require.NoError(t, ext.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, ext.Shutdown(context.Background())) }) // the test's own context is done by then
	c := ext.(*console)
	return running{c, "http://" + c.listener.Addr().String()}
}

type answer struct {
	status int
	header http.Header
	body   string
	err    error // of reading the body
}

func (c running) get(t *testing.T, path string, change func(*http.Request)) answer {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, c.url+path, nil)
	require.NoError(t, err)
	if change != nil {
		change(request)
	}
	return do(t, request)
}

func do(t *testing.T, request *http.Request) answer {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	got, err := client.Do(request)
	require.NoError(t, err)
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	return answer{got.StatusCode, got.Header, string(body), err}
}

// answering is a Prometheus that answers everything alike.
func answering(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, body)
	}
}

func TestTheConsoleStartsAndEndsAsComponentsDo(t *testing.T) {
	lifecycletest.Test(t, componenttest.NewNopHost(), func(t testing.TB) extension.Extension {
		cfg := createDefaultConfig().(*Config)
		cfg.NetAddr.Endpoint = "localhost:0"
		ext, err := NewFactory().Create(t.Context(), extensiontest.NewNopSettings(metadata.Type), cfg)
		require.NoError(t, err)
		return ext
	}, nil)
}

func TestAnEndpointThatIsTakenKeepsTheCollectorFromStarting(t *testing.T) {
	taken, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	defer taken.Close()
	cfg := createDefaultConfig().(*Config)
	cfg.NetAddr.Endpoint = taken.Addr().String()
	ext, err := NewFactory().Create(t.Context(), extensiontest.NewNopSettings(metadata.Type), cfg)
	require.NoError(t, err)
	require.ErrorContains(t, ext.Start(t.Context(), componenttest.NewNopHost()), "address already in use")
	require.NoError(t, ext.Shutdown(t.Context()))
}

// Guarantees: the log says where the page is, and warns when others than this machine reach it without a password.
func TestTheLogSaysWhereThePageIs(t *testing.T) {
	f := func(endpoint string, warnings int) {
		t.Helper()
		core, logs := observer.New(zap.InfoLevel)
		set := extensiontest.NewNopSettings(metadata.Type)
		set.Logger = zap.New(core)
		cfg := createDefaultConfig().(*Config)
		cfg.NetAddr.Endpoint = endpoint
		c := begin(t, set, cfg)
		assert.Equal(t, 1, logs.FilterMessage("console is at "+c.url).Len())
		assert.Equal(t, warnings, logs.FilterLevelExact(zap.WarnLevel).Len())
	}
	f("localhost:0", 0)
	f("0.0.0.0:0", 1)
}

// Scenario: a query takes as long as it may while the Collector ends. Guarantees: it does not hold the Collector up.
func TestAQueryUnderWayDoesNotHoldUpShutdown(t *testing.T) {
	asked, answered := make(chan struct{}), make(chan struct{})
	c := start(t, nil, func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	}, nil)
	go func() {
		defer close(answered)
		client := &http.Client{Transport: &http.Transport{}}
		defer client.CloseIdleConnections()
		got, err := client.Get(c.url + "/api/v1/query?query=up")
		if err == nil {
			got.Body.Close()
		}
	}()
	<-asked
	require.NoError(t, c.Shutdown(t.Context())) // by itself, the query would never end
	<-answered
}

func TestThePageIsServedWithItsFilesAndAskedForAgainOnlyWhenItChanged(t *testing.T) {
	c := start(t, nil, answering("{}"), nil)
	f := func(path, contentType, content string) {
		t.Helper()
		got := c.get(t, path, nil)
		assert.Equal(t, http.StatusOK, got.status)
		assert.Equal(t, contentType, got.header.Get("Content-Type"))
		assert.Contains(t, got.body, content)
		again := c.get(t, path, func(r *http.Request) { r.Header.Set("If-None-Match", got.header.Get("ETag")) })
		assert.Equal(t, http.StatusNotModified, again.status)
	}
	f("/", "text/html; charset=utf-8", `<script src="js/main.js" type="module">`)
	f("/js/main.js", "text/javascript; charset=utf-8", "SPDX-License-Identifier")
	f("/console.css", "text/css; charset=utf-8", "--surface")
	f("/icon.svg", "image/svg+xml", "<svg")
	f("/vendor/uplot/uPlot.iife.min.js", "text/javascript; charset=utf-8", "uPlot")
	f("/vendor/uplot/LICENSE", "text/plain; charset=utf-8", "MIT License")

	assert.Equal(t, http.StatusNotFound, c.get(t, "/js", nil).status, "folders are not listed")
	assert.Equal(t, http.StatusNotFound, c.get(t, "/../config.go", nil).status)
}

// Guarantees: what the page reads from elsewhere is nothing: all that it names is among its files.
func TestThePageNeedsNothingFromElsewhere(t *testing.T) {
	all, err := newFiles()
	require.NoError(t, err)
	for name, f := range all {
		assert.NotEmpty(t, f.contentType, name)
		if f.contentType == types[".html"] || f.contentType == types[".css"] {
			assert.NotContains(t, string(f.body), "http", name)
		}
	}
	assert.NotContains(t, string(all["/"].body), "<style", "the content security policy would refuse it")
	assert.NotContains(t, string(all["/"].body), "style=")
}

func TestThePageIsToldWhereTracesAreAndNoSecret(t *testing.T) {
	c := start(t, nil, answering("{}"), func(cfg *Config) {
		cfg.TraceURL = "http://localhost:16686/trace/{trace_id}"
		cfg.Query.Headers.Set("Authorization", "Bearer secret")
	})
	got := c.get(t, "/config.json", nil)
	assert.JSONEq(t, fmt.Sprintf(`{"query_url":%q,"trace_url":"http://localhost:16686/trace/{trace_id}"}`, c.cfg.QueryURL), got.body)
}
