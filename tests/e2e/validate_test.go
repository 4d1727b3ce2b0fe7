// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// validateConfig has holes for the settings of each component of ours.
const validateConfig = `
extensions:
  slo_catalog: %s
receivers:
  otlp: {protocols: {http: {endpoint: "127.0.0.1:0"}}}
connectors:
  slo: %s
exporters:
  nop:
service:
  extensions: [slo_catalog]
  pipelines:
    metrics: {receivers: [otlp], exporters: [slo]}
    metrics/slo: {receivers: [slo], exporters: [nop]}
    logs/slo: {receivers: [slo], exporters: [nop]}
`

// Guarantees: what is wrong in a component of ours is found before it is started, and the message names the path of the key.
func TestValidateNamesTheKeyPath(t *testing.T) {
	const catalog, slo = `{paths: [builtin:vllm]}`, `{}`
	run := func(catalog, slo string) (string, int) {
		return spawn.Run(t, "validate", "--config", spawn.WriteConfig(t, fmt.Sprintf(validateConfig, catalog, slo)))
	}
	out, code := run(catalog, slo)
	assert.Equal(t, 0, code, out)
	f := func(catalog, slo string, want ...string) {
		t.Helper()
		out, code := run(catalog, slo)
		assert.Equal(t, 1, code, out)
		for _, w := range want {
			assert.Contains(t, out, w)
		}
	}
	// a typo
	f(`{path: [builtin:vllm]}`, slo, "extensions", "slo_catalog", "has invalid keys: path")
	f(catalog, `{latenes: 5s}`, "connectors", "slo", "has invalid keys: latenes")
	// a null
	f(`{paths: }`, slo, "extensions", "slo_catalog", "paths: is null")
	f(`{paths: [builtin:vllm, ~]}`, slo, "extensions", "slo_catalog", "paths[1]: is null")
	f(catalog, `{group_by: , lateness: ~}`, "connectors", "slo", "group_by: is null", "lateness: is null")
	// a wrong type
	f(`{paths: {a: b}}`, slo, "extensions", "slo_catalog", "'paths' source data must be an array or slice, got map")
	f(catalog, `{lateness: soon}`, "connectors", "slo", "'lateness' time: invalid duration")
	f(catalog, `{max_series: many}`, "connectors", "slo", "'max_series' expected type 'int'")
	// a wrong value
	f(`{paths: [builtin:vlm]}`, slo, "extensions::slo_catalog: paths[0]: unknown builtin \"vlm\": known are vllm")
	f(catalog, `{idle_timeout: 0s, window: -5m}`, "connectors::slo: window: -5m0s is not a whole number of seconds", "idle_timeout: 0s must be positive")
}
