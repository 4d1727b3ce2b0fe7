// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

const statusConfig = `
extensions:
  slo_catalog: {paths: [%[1]s], reload_interval: 100ms}
  healthcheckv2:
    use_v2: true
    component_health: {include_permanent_errors: true, include_recoverable_errors: true, recovery_duration: 0s}
    http: {endpoint: %[2]q, status: {enabled: true, path: /status}}
receivers:
  otlp: {protocols: {http: {endpoint: "127.0.0.1:0"}}}
connectors:
  slo:
exporters:
  nop:
service:
  extensions: [healthcheckv2, slo_catalog]
  pipelines:
    metrics: {receivers: [otlp], exporters: [slo]}
    metrics/slo: {receivers: [slo], exporters: [nop]}
  telemetry: {metrics: {level: none}}
`

// Scenario: an SLO file is broken and mended while the shipped binary runs with a health check.
// Guarantees: the health check says so, with the mistake, and says when it is over.
func TestABrokenCatalogShowsInTheHealthCheck(t *testing.T) {
	parallel(t)
	file, health := filepath.Join(t.TempDir(), "slo.yaml"), spawn.FreeEndpoint(t)
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	write(ttftSLO)
	c := spawn.Start(t, spawn.Options{Configs: []string{spawn.WriteConfig(t, fmt.Sprintf(statusConfig, file, health))}})
	c.WaitReady()
	var body string
	soon := func(code int, want string) {
		t.Helper()
		assert.Eventually(t, func() bool {
			resp, err := http.Get("http://" + health + "/status?verbose")
			if err != nil {
				return false
			}
			defer resp.Body.Close()
			data, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			body = string(data)
			return resp.StatusCode == code && strings.Contains(body, want)
		}, patience, 100*time.Millisecond, "%d and %q in %s", code, want, &body)
	}
	soon(http.StatusOK, "extension:slo_catalog")
	write(strings.Replace(ttftSLO, "target: 0.95", "target: 95", 1))
	soon(http.StatusInternalServerError, "95 is not in [0, 1)")
	write(ttftSLO)
	soon(http.StatusOK, "extension:slo_catalog")
	assert.Equal(t, 0, c.Stop())
}
