// SPDX-License-Identifier: Apache-2.0

package tenantcheckconverter

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
)

// check is what the converter says of a configuration, which it must not change.
func check(t *testing.T, yaml string) error {
	t.Helper()
	retrieved, err := confmap.NewRetrievedFromYAML([]byte(yaml))
	require.NoError(t, err)
	conf, err := retrieved.AsConf()
	require.NoError(t, err)
	before := maps.Clone(conf.ToStringMap())
	err = NewFactory().Create(confmap.ConverterSettings{}).Convert(context.Background(), conf)
	assert.Equal(t, before, conf.ToStringMap())
	return err
}

const routed = `
connectors: {tenant_routing: {}, forward/out: {}, slo: {}, spanmetrics: {}, spanmetrics/tenant: {dimensions: [{name: tenant}]}}
exporters:
  prometheus: {endpoint: "localhost:9464"}
  prometheus/labels: {endpoint: "localhost:9465", resource_to_telemetry_conversion: {enabled: true}}
processors:
  transform/tenant: {metric_statements: ['set(datapoint.attributes["tenant"], resource.attributes["tenant"])']}
  transform/contexts: {metric_statements: [{context: datapoint, statements: ['set(attributes["tenant"], resource.attributes["tenant"])']}]}
  transform/other: {metric_statements: ['set(resource.attributes["tenant"], "a")', 'set(datapoint.attributes["team"], "b")']}
service:
  pipelines:
    metrics: {receivers: [otlp], exporters: [tenant_routing]}
`

// Guarantees: a prometheus exporter in which tenants would overwrite each other is refused, by name and with what would be
// right, be it directly behind tenant_routing or further on.
func TestTheTrapIsRefused(t *testing.T) {
	f := func(pipelines, pipeline string) {
		t.Helper()
		assert.EqualError(t, check(t, routed+pipelines), `exporters::prometheus: pipeline `+pipeline+` brings it the series of several tenants, `+
			`and those of services with the same name would overwrite each other: set resource_to_telemetry_conversion: {enabled: true}, or put `+
			`the tenant on the points before it, by a transform processor with set(datapoint.attributes["tenant"], resource.attributes["tenant"])`)
	}
	f(`    metrics/out: {receivers: [tenant_routing], exporters: [prometheus]}`, "metrics/out")
	f(`    metrics/out: {receivers: [otlp, tenant_routing], processors: [batch], exporters: [debug, prometheus, prometheus/labels]}`, "metrics/out")
	f(`    metrics/out: {receivers: [tenant_routing], processors: [transform/other], exporters: [prometheus]}`, "metrics/out")
	f("    metrics/a: {receivers: [forward/out], exporters: [prometheus]}\n    metrics/b: {receivers: [tenant_routing], exporters: [forward/out]}", "metrics/a")
	f("    metrics/a: {receivers: [tenant_routing], exporters: [prometheus]}\n    metrics/b: {receivers: [tenant_routing], exporters: [prometheus]}", "metrics/a")
	// What a connector of others makes of it is as of several tenants.
	f("    traces: {receivers: [otlp], exporters: [tenant_routing]}\n    traces/t: {receivers: [tenant_routing], exporters: [spanmetrics]}\n"+
		"    metrics/a: {receivers: [spanmetrics], exporters: [prometheus]}", "metrics/a")
}

// Guarantees: what puts the tenant on some points only, or another than the resource's, or takes it away again, does not keep tenants apart.
func TestATenantThatIsNotOnEachPointDoesNotKeepThemApart(t *testing.T) {
	f := func(ok bool, exporter string, processors ...string) {
		t.Helper()
		yaml, ids := "processors:\n", make([]string, len(processors))
		for i, p := range processors {
			kind, settings, _ := strings.Cut(p, " ")
			ids[i] = fmt.Sprintf("%s/%d", kind, i)
			yaml += "  " + ids[i] + ": " + settings + "\n"
		}
		err := check(t, yaml+`
connectors: {tenant_routing: {}}
exporters:
  prometheus: {endpoint: "localhost:9464"}
  prometheus/labels: {endpoint: "localhost:9465", resource_to_telemetry_conversion: {enabled: true}}
service:
  pipelines:
    metrics: {receivers: [otlp], exporters: [tenant_routing]}
    metrics/out: {receivers: [tenant_routing], processors: [`+strings.Join(ids, ", ")+`], exporters: [`+exporter+`]}
`)
		assert.Equal(t, ok, err == nil, "%v: %v", processors, err)
	}
	set := `set(datapoint.attributes["tenant"], resource.attributes["tenant"])`
	f(true, "prometheus", `transform {metric_statements: ['`+set+` where resource.attributes["tenant"] != nil']}`)
	f(true, "prometheus", `transform {metric_statements: [{conditions: ['resource.attributes["tenant"] != nil'], statements: ['delete_matching_keys(datapoint.attributes, "^tenant$")', '`+set+`']}]}`)
	f(true, "prometheus", `transform {metric_statements: ['`+set+`', 'delete_key(datapoint.attributes, "pod")', 'keep_keys(datapoint.attributes, ["tenant", "model"])', 'delete_matching_keys(datapoint.attributes, "^k8s")']}`, `attributes {actions: [{key: pod, action: delete}]}`)
	f(false, "prometheus", `transform {metric_statements: ['set(datapoint.attributes["tenant"], "a")']}`)
	f(false, "prometheus", `transform {metric_statements: ['`+set+`', 'set(datapoint.attributes["tenant"], "a")']}`)
	f(false, "prometheus", `transform {metric_statements: ['`+set+` where metric.name == "x"']}`)
	f(false, "prometheus", `transform {metric_statements: [{conditions: ['metric.name == "x"'], statements: ['`+set+`']}]}`)
	f(false, "prometheus", `transform {metric_statements: [{context: resource, statements: ['set(attributes["tenant"], resource.attributes["tenant"])']}]}`)
	f(false, "prometheus", `transform {metric_statements: ['`+set+`', 'delete_key(datapoint.attributes, "tenant")']}`)
	f(false, "prometheus", `transform {metric_statements: ['`+set+`', 'delete_matching_keys(datapoint.attributes, "^t")']}`)
	f(false, "prometheus", `transform {metric_statements: ['`+set+`', 'keep_keys(datapoint.attributes, ["model"])']}`)
	f(false, "prometheus", `transform {metric_statements: ['`+set+`']}`, `attributes {actions: [{key: tenant, action: delete}]}`)
	f(false, "prometheus", `resource {attributes: [{key: tenant, action: delete}]}`, `transform {metric_statements: ['`+set+`']}`)
	f(true, "prometheus", `transform {metric_statements: ['`+set+`']}`, `resource {attributes: [{key: tenant, action: delete}]}`)
	f(true, "prometheus/labels", `resource {attributes: [{key: pod, action: delete}, {key: tenant, value: x, action: insert}]}`)
	f(false, "prometheus/labels", `resource {attributes: [{key: tenant, action: delete}]}`)
	f(false, "prometheus/labels", `transform {metric_statements: ['delete_key(resource.attributes, "tenant")']}`)
}

// Guarantees: remote write into one database is refused as well, and into one for each tenant it is fine.
func TestRemoteWriteIntoOneDatabaseIsRefused(t *testing.T) {
	f := func(settings string, ok bool) {
		t.Helper()
		err := check(t, `
connectors: {tenant_routing: {}}
extensions: {tenant_headers: {}, basicauth/client: {}}
exporters: {prometheusremotewrite: {endpoint: "http://localhost:9090/api/v1/write", `+settings+`}}
service: {pipelines: {metrics: {receivers: [otlp], exporters: [tenant_routing]}, metrics/t: {receivers: [tenant_routing], exporters: [prometheusremotewrite]}}}
`)
		assert.Equal(t, ok, err == nil, "%v", err)
	}
	f("", false)
	f("auth: {authenticator: basicauth/client}", false)
	f("auth: {authenticator: tenant_headers}", true)
	f("resource_to_telemetry_conversion: {enabled: true}", true)
}

func TestWhatKeepsTenantsApartIsFine(t *testing.T) {
	f := func(pipelines string) {
		t.Helper()
		assert.NoError(t, check(t, routed+pipelines))
	}
	f(`    metrics/out: {receivers: [tenant_routing], exporters: [prometheus/labels]}`)
	f(`    metrics/out: {receivers: [tenant_routing], processors: [batch, transform/tenant], exporters: [prometheus]}`)
	f(`    metrics/out: {receivers: [tenant_routing], processors: [transform/contexts], exporters: [prometheus]}`)
	f(`    metrics/out: {receivers: [tenant_routing], exporters: [otlp_http]}`)
	// Results carry the tenant on their points.
	f("    metrics/out: {receivers: [tenant_routing], exporters: [slo]}\n    metrics/slo: {receivers: [slo], exporters: [prometheus]}")
	f("    traces: {receivers: [otlp], exporters: [tenant_routing]}\n    traces/t: {receivers: [tenant_routing], exporters: [spanmetrics/tenant]}\n" +
		"    metrics/a: {receivers: [spanmetrics/tenant], exporters: [prometheus]}")
	// What does not come from tenant_routing.
	f(`    metrics/other: {receivers: [otlp], exporters: [prometheus]}`)
	f("    logs: {receivers: [otlp], exporters: [tenant_routing]}\n    logs/out: {receivers: [tenant_routing], exporters: [otlp_http]}")
}

// Guarantees: an exporter for the only tenant of a group is fine, one for a pattern or for everybody else is not.
func TestThePipelineOfOneTenantIsFine(t *testing.T) {
	f := func(routing string, ok bool) {
		t.Helper()
		err := check(t, `
connectors: {tenant_routing: `+routing+`}
exporters: {prometheus: {endpoint: "localhost:9464"}}
service: {pipelines: {metrics: {receivers: [otlp], exporters: [tenant_routing]}, metrics/acme: {receivers: [tenant_routing], exporters: [prometheus]}}}
`)
		assert.Equal(t, ok, err == nil, "%v", err)
	}
	f(`{groups: [{name: a, tenants: [acme], pipelines: {metrics: [metrics/acme]}}]}`, true)
	f(`{groups: [{name: a, tenants: [acme, beta], pipelines: {metrics: [metrics/acme]}}]}`, false)
	f(`{groups: [{name: a, tenants: ["acme*"], pipelines: {metrics: [metrics/acme]}}]}`, false)
	f(`{groups: [{name: a, tenants: [acme], pipelines: {metrics: [metrics/acme]}}, {name: b, tenants: [beta], pipelines: {metrics: [metrics/acme]}}]}`, false)
	f(`{default_pipelines: {metrics: [metrics/acme]}, groups: [{name: a, tenants: [acme], pipelines: {metrics: [metrics/acme]}}]}`, false)
}

// Guarantees: what is made of the traces of one tenant is of that tenant.
func TestWhatIsMadeOfOneTenantIsFine(t *testing.T) {
	f := func(tenants string, ok bool) {
		t.Helper()
		err := check(t, `
connectors: {spanmetrics: {}, tenant_routing: {groups: [{name: a, tenants: `+tenants+`, pipelines: {traces: [traces/acme]}}]}}
exporters: {prometheus: {endpoint: "localhost:9464"}}
service:
  pipelines:
    traces: {receivers: [otlp], exporters: [tenant_routing]}
    traces/acme: {receivers: [tenant_routing], exporters: [spanmetrics]}
    metrics: {receivers: [spanmetrics], exporters: [prometheus]}
`)
		assert.Equal(t, ok, err == nil, "%v", err)
	}
	f("[acme]", true)
	f("[acme, beta]", false)
}

// Guarantees: what a tenant_routing connector names and is not there is said by the key it stands under, before anything starts.
func TestNamesThatAreNobodysAreRefused(t *testing.T) {
	f := func(settings, headers string, want ...string) {
		t.Helper()
		err := check(t, `
connectors: {tenant_routing: `+settings+`}
extensions: {tenant_headers/own: `+headers+`, file_storage: {directory: x}, file_storage/idle: {directory: y}}
exporters: {otlp_http: {endpoint: "http://localhost:4318", auth: {authenticator: tenant_headers/own}}}
service:
  extensions: [tenant_headers/own, file_storage]
  pipelines:
    logs: {receivers: [otlp], exporters: [tenant_routing]}
    logs/t: {receivers: [tenant_routing], exporters: [otlp_http]}
    logs/other: {receivers: [otlp], exporters: [otlp_http]}
`)
		forwarded := check(t, `
connectors: {tenant_routing: `+settings+`, forward: {}}
extensions: {tenant_headers/own: `+headers+`}
exporters: {otlp_http: {endpoint: "http://localhost:4318", auth: {authenticator: tenant_headers/own}}}
service:
  extensions: [tenant_headers/own, file_storage, file_storage/idle]
  pipelines:
    logs: {receivers: [otlp], exporters: [tenant_routing]}
    logs/t: {receivers: [tenant_routing], exporters: [forward]}
    logs/x: {receivers: [forward], exporters: [otlp_http]}
`)
		if len(want) > 0 && strings.Contains(want[0], "metadata_key") {
			assert.EqualError(t, forwarded, want[0])
		}
		if len(want) == 0 {
			assert.NoError(t, err)
			return
		}
		assert.EqualError(t, err, strings.Join(want, "\n"))
	}
	f(`{}`, `{}`)
	f(`{sending_queue: {storage: file_storage}, default_pipelines: {logs: [logs/t]}, metadata_key: X-Tenant}`, `{from_metadata: x-tenant}`)
	f(`{sending_queue: {storage: file_storage/idle}}`, `{}`,
		`connectors::tenant_routing::sending_queue::storage: no extension "file_storage/idle" is running: add it under extensions and service.extensions`)
	f(`{default_pipelines: {logs: [logs/t, logs/other], metrics: [metrics/t]}}`, `{}`,
		`connectors::tenant_routing::default_pipelines::logs[1]: no pipeline "logs/other" has "tenant_routing" among its receivers`,
		`connectors::tenant_routing::default_pipelines::metrics[0]: no pipeline "metrics/t" has "tenant_routing" among its receivers`)
	f(`{groups: [{name: a, tenants: [b], pipelines: {logs: [logs/t]}}, {name: c, tenants: [d], pipelines: {logs: [logs/x]}}]}`, `{}`,
		`connectors::tenant_routing::groups[1]::pipelines::logs[0]: no pipeline "logs/x" has "tenant_routing" among its receivers`)
	const elsewhere = `connectors::tenant_routing::metadata_key: the tenant is written under %q, and extensions::tenant_headers/own, by which ` +
		`exporters::otlp_http sends, reads %q: set its from_metadata to the same`
	f(`{metadata_key: x-tenant}`, `{}`, fmt.Sprintf(elsewhere, "x-tenant", "x-scope-orgid"))
	f(``, `{from_metadata: X-Tenant}`, fmt.Sprintf(elsewhere, "x-scope-orgid", "x-tenant"))
}

// Guarantees: configurations of other Collectors are left alone, and what is not shaped as a configuration is the Collector's
// to refuse.
func TestOtherConfigurationsAreLeftAlone(t *testing.T) {
	files, err := filepath.Glob("../../../tests/upstream/testdata/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.NoError(t, check(t, string(content)), file)
	}
	for _, odd := range []string{`{}`, `service:`, `{service: {pipelines: [a]}, connectors: 5, exporters: {prometheus: }}`, `{service: {pipelines: {metrics: {receivers: tenant_routing, exporters: [5]}}}}`} {
		assert.NoError(t, check(t, odd), odd)
	}
}
