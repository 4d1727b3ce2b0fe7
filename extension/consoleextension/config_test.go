// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/configtest"
)

func TestTheDefaultsAskTheEmbeddedDatabaseAndListenOnLocalhost(t *testing.T) {
	cfg, err := configtest.Read(t, "testdata/config.yaml", "console", createDefaultConfig().(*Config))
	require.NoError(t, err)
	assert.Equal(t, createDefaultConfig(), cfg)
	assert.Equal(t, "localhost:8686", cfg.NetAddr.Endpoint)
	assert.Equal(t, "http://localhost:9191", cfg.QueryURL)
}

func TestConfigurationsAreReadAsWritten(t *testing.T) {
	cfg, err := configtest.Read(t, "testdata/config.yaml", "console/full", createDefaultConfig().(*Config))
	require.NoError(t, err)
	assert.Equal(t, "console.example.com:8443", cfg.NetAddr.Endpoint)
	assert.Equal(t, "https://mimir.example.com/prometheus", cfg.QueryURL)
	assert.Equal(t, 20*time.Second, cfg.Query.Timeout)
	tenant, ok := cfg.Query.Headers.Get("X-Scope-OrgID")
	assert.True(t, ok)
	assert.Equal(t, "acme", string(tenant))
	assert.Equal(t, []string{"slo.example.com"}, cfg.AllowedHosts)
	assert.Equal(t, "http://localhost:16686/trace/{trace_id}", cfg.TraceURL)
	assert.Equal(t, 4, cfg.MaxConcurrentQueries)
	assert.Equal(t, int64(1<<20), cfg.MaxResponseBytes)
}

func TestAWrongConfigurationNamesItsKeyAndTheCure(t *testing.T) {
	f := func(section string, messages ...string) {
		t.Helper()
		configtest.Refused(t, "testdata/config.bad.yaml", section, createDefaultConfig().(*Config), messages...)
	}
	f("console/endpoint", "endpoint: is empty: write e.g. localhost:8686")
	f("console/no-url", "query_url: is no URL that begins with http:// or https:// and a host")
	f("console/api", "query_url: leave out /api/v1, it is added")
	f("console/parameter", "query_url: must end with its path: leave out what follows ? or #")
	f("console/user", "query_url: names a user: write query::auth or query::headers instead")
	f("console/cors", "cors: other pages must not ask the console: leave it out")
	f("console/query-endpoint", "query::endpoint: write query_url instead")
	f("console/timeout", "query::timeout: 0s must be positive")
	f("console/long", "write_timeout: 1m0s must be more than query::timeout, 2m0s")
	f("console/unit", "query::timeout: 20 has no unit: write 20s, 20m or 20h")
	f("console/compression", "query::compression: Prometheus reads no compressed queries: leave it out")
	f("console/hosts", `allowed_hosts[1]: "*.example.com" is no host name: write e.g. console.example.com, without port`,
		`allowed_hosts[2]: "slo.example.com:8686" is no host name`, `allowed_hosts[3]: "" is no host name`)
	f("console/trace", "trace_url: has no {trace_id}: write e.g. http://localhost:16686/trace/{trace_id}")
	f("console/trace-scheme", "trace_url: is no URL that begins with http:// or https:// and a host")
	f("console/limits", "max_concurrent_queries: 0 must be at least 1", "max_response_bytes: 10 must be at least 1024")
	f("console/null", "query_url: is null")
	f("console/typo", "has invalid keys: query_ulr")
}
