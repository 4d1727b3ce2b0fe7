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
processors:
  slo_schema: %s
connectors:
  slo: %s
exporters:
  nop:
service:
  extensions: [slo_catalog]
  pipelines:
    metrics: {receivers: [otlp], processors: [slo_schema], exporters: [slo]}
    metrics/slo: {receivers: [slo], exporters: [nop]}
    logs/slo: {receivers: [slo], exporters: [nop]}
`

// Guarantees: what is wrong in a component of ours is found before it is started, and the message names the path of the key.
func TestValidateNamesTheKeyPath(t *testing.T) {
	parallel(t)
	const catalog, schema, slo = `{paths: [builtin:vllm]}`, `{}`, `{}`
	run := func(catalog, schema, slo string) (string, int) {
		return spawn.Run(t, "validate", "--config", spawn.WriteConfig(t, fmt.Sprintf(validateConfig, catalog, schema, slo)))
	}
	out, code := run(catalog, schema, slo)
	assert.Equal(t, 0, code, out)
	f := func(catalog, schema, slo string, want ...string) {
		t.Helper()
		out, code := run(catalog, schema, slo)
		assert.Equal(t, 1, code, out)
		for _, w := range want {
			assert.Contains(t, out, w)
		}
	}
	// a typo
	f(`{path: [builtin:vllm]}`, schema, slo, "extensions", "slo_catalog", "has invalid keys: path")
	f(catalog, schema, `{latenes: 5s}`, "connectors", "slo", "has invalid keys: latenes")
	f(catalog, `{on_unkn: tag}`, slo, "processors", "slo_schema", "has invalid keys: on_unkn")
	// a null
	f(catalog, `{dialects: , catalog: ~}`, slo, "processors", "slo_schema", "dialects: is null", "catalog: is null")
	f(`{paths: }`, schema, slo, "extensions", "slo_catalog", "paths: is null")
	f(`{paths: [builtin:vllm, ~]}`, schema, slo, "extensions", "slo_catalog", "paths[1]: is null")
	f(catalog, schema, `{group_by: , lateness: ~}`, "connectors", "slo", "group_by: is null", "lateness: is null")
	// a wrong type
	f(`{paths: {a: b}}`, schema, slo, "extensions", "slo_catalog", "'paths' source data must be an array or slice, got map")
	f(catalog, schema, `{lateness: soon}`, "connectors", "slo", "'lateness' time: invalid duration")
	f(catalog, schema, `{max_series: many}`, "connectors", "slo", "'max_series' expected type 'int'")
	f(catalog, `{dialects: {a: b}}`, slo, "processors", "slo_schema", "'dialects' source data must be an array or slice, got map")
	f(catalog, schema, `{lateness: 30}`, "connectors", "slo", "lateness: 30 has no unit: write 30s, 30m or 30h")
	// a wrong value
	f(catalog, `{on_unknown: delete}`, slo, "processors::slo_schema: on_unknown:")
	f(`{paths: [builtin:vlm]}`, schema, slo, "extensions::slo_catalog: paths[0]: unknown builtin \"vlm\": known are goodput, mlperf, vllm")
	f(catalog, schema, `{idle_timeout: 0s, window: -5m}`, "connectors::slo: window: -5m0s is not a whole number of seconds", "idle_timeout: 0s must be positive")
}
