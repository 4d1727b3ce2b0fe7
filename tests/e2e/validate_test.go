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

// Guarantees: a configuration in which tenants' data would meet, or be lost as a whole, is found before it is started.
func TestValidateFindsWhatTenantsWouldLose(t *testing.T) {
	f := func(connectors, exporter, pipelines string, want ...string) {
		t.Helper()
		out, code := spawn.Run(t, "validate", "--config", spawn.WriteConfig(t, fmt.Sprintf(`
extensions: {tenant_headers: {}, file_storage: {directory: %q}}
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:0"}}}}
connectors: {%s}
exporters: {%s}
service:
  extensions: [tenant_headers]
  pipelines: {traces: {receivers: [otlp], exporters: [tenant_routing]}, metrics: {receivers: [otlp], exporters: [tenant_routing]}, %s}
`, t.TempDir(), connectors, exporter, pipelines)))
		for _, w := range want {
			assert.Contains(t, out, w)
		}
		assert.Equal(t, len(want) > 0, code != 0, out)
	}
	const (
		both    = `traces/t: {receivers: [tenant_routing], exporters: [nop]}, metrics/t: {receivers: [tenant_routing], exporters: [prometheusremotewrite]}`
		spans   = `traces/t: {receivers: [tenant_routing], exporters: [spanmetrics]}, metrics/t: {receivers: [tenant_routing], exporters: [nop]}, metrics/s: {receivers: [spanmetrics], exporters: [prometheus]}`
		headers = `traces/t: {receivers: [tenant_routing], exporters: [otlp_http]}, metrics/t: {receivers: [tenant_routing], exporters: [nop]}`
		otlp    = `nop: , otlp_http: {endpoint: "http://127.0.0.1:1", auth: {authenticator: tenant_headers}}`
	)
	f(`tenant_routing: `, `nop: , prometheusremotewrite: {endpoint: "http://127.0.0.1:1"}`, both, "exporters::prometheusremotewrite: pipeline metrics/t brings it the series of several tenants")
	f(`tenant_routing: `, `nop: , prometheusremotewrite: {endpoint: "http://127.0.0.1:1", auth: {authenticator: tenant_headers}}`, both)
	f(`tenant_routing: , spanmetrics: `, `nop: , prometheus: {endpoint: "127.0.0.1:0"}`, spans, "exporters::prometheus: pipeline metrics/s brings it the series of several tenants")
	f(`tenant_routing: , spanmetrics: {dimensions: [{name: tenant}]}`, `nop: , prometheus: {endpoint: "127.0.0.1:0"}`, spans)
	f(`tenant_routing: {metadata_key: x-tenant}`, otlp, headers, `connectors::tenant_routing::metadata_key: the tenant is written under "x-tenant"`)
	f(`tenant_routing: {sending_queue: {storage: file_storage}}`, otlp, headers, `connectors::tenant_routing::sending_queue::storage: no extension "file_storage" is running`)
	f(`tenant_routing: {default_pipelines: {traces: [traces]}}`, otlp, headers, `connectors::tenant_routing::default_pipelines::traces[0]: no pipeline "traces" has "tenant_routing" among its receivers`)
	f(`tenant_routing: `, otlp, headers)
}
