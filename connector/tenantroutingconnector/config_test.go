// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap/xconfmap"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/otelcol-llm/otelcol-llm/internal/configtest"
)

func TestConfigurationsAreReadAsWritten(t *testing.T) {
	read := func(section string) *Config {
		cfg, err := configtest.Read(t, "testdata/config.yaml", section, createDefaultConfig().(*Config))
		require.NoError(t, err)
		return cfg
	}
	assert.Equal(t, createDefaultConfig(), read("tenant_routing"))
	assert.False(t, read("tenant_routing/direct").Queue.HasValue())

	cfg := read("tenant_routing/all")
	queue := cfg.Queue.Get()
	require.NotNil(t, queue)
	assert.Equal(t, int64(5), queue.QueueSize)
	assert.Equal(t, 1, queue.NumConsumers)
	assert.Equal(t, &storageID, queue.StorageID)
	assert.Equal(t, int64(100), queue.Batch.Get().MinSize)
	retry := createDefaultConfig().(*Config).Retry
	retry.MaxElapsedTime = time.Hour
	assert.Equal(t, &Config{
		TenantFrom: []string{"auth:username", "metadata:x-org", "point:customer.id", "service.name"}, TrustMetadata: true, TrustTenant: true,
		Mapping:   MappingConfig{Template: "eu-{tenant}", Table: "/etc/otelcol-llm/tenants.yaml", ReloadInterval: time.Minute},
		OnUnknown: Reject, DefaultTenant: "nobody", MaxTenants: 7, OverflowTenant: "many", TenantTTL: 2 * time.Hour,
		DefaultPipelines: Pipelines{
			Metrics: []pipeline.ID{metricsPipeline("a"), metricsPipeline("b")},
			Logs:    []pipeline.ID{pipeline.NewIDWithName(pipeline.SignalLogs, "a")}, Traces: []pipeline.ID{pipeline.NewID(pipeline.SignalTraces)},
		},
		Groups: []Group{{
			Name: "premium", Tenants: []string{"acme", "gold-*"}, Pipelines: Pipelines{Metrics: []pipeline.ID{metricsPipeline("premium")}},
			Limits: configoptional.Some(Limits{ItemsPerSecond: 1000}),
		}},
		Limits:   Limits{ItemsPerSecond: 100.5, BytesPerSecond: 1e6, ActiveSeries: 5000, Burst: 30 * time.Second},
		OnExcess: DropExcess, MetadataKey: "x-tenant", KeepMetadata: []string{"x-source"}, Queue: cfg.Queue, Retry: retry, DrainTimeout: time.Second,
	}, cfg)
}

func TestAWrongConfigurationNamesItsKeys(t *testing.T) {
	f := func(section string, want ...string) {
		t.Helper()
		configtest.Refused(t, "testdata/config.bad.yaml", section, createDefaultConfig(), want...)
	}
	f("tenant_routing/values",
		`tenant_from: [0]: "tenant" is what an earlier hop has set: use trust_tenant instead`,
		`[2]: "auth:x" is of the request, and must stand before attributes of its data`,
		`[3]: "metadata:" names no key`,
		`mapping: template: "a/{tenant}" makes no tenant ids`,
		`reload_interval: -1s is negative`,
		`on_unknown: "keep" is none of default, reject, drop`,
		`on_excess: "keep" is none of refuse, drop`,
		`default_tenant: "a/b" is no tenant id`,
		`overflow_tenant: ".." is no tenant id`,
		`max_tenants: 0 must be at least 1`,
		`tenant_ttl: 0s must be positive`,
		`default_pipelines::metrics[0]: "logs/a" is no pipeline of metrics`,
		`default_pipelines::metrics[2]: "metrics/a" stands twice`,
		`groups[0]::name: must not be empty`,
		`groups[0]::tenants: must name a tenant`,
		`groups[1]::tenants[0]: "[" is neither a tenant id nor a pattern such as team-*`,
		`groups[1]::pipelines::logs[0]: "traces/x" is no pipeline of logs`,
		`active_series: -1 must not be negative; 0 is no limit`,
		`groups[2]::name: "g" stands twice`,
		`groups[2]::tenants[0]: "acme" is in group g already`,
		`groups[3]::tenants[1]: "team-*" stands twice`,
		`groups[3]::tenants[2]: no tenant can be called "a b": ids are at most 150 of a-z A-Z 0-9 !-_.*'()`,
		`groups[3]::tenants[3]: no tenant can be called "acme/x"`,
		`groups[3]::tenants[4]: no tenant can be called "x/*"`,
		`groups[4]::tenants[0]: "team-*" is in group h already`,
		`groups[4]::tenants[1]: "team-1" is in group h already, by "team-*"`,
		`limits: items_per_second: -1 must not be negative; 0 is no limit`,
		`burst: 10ms must be at least 1s`,
		`metadata_key: "" is no key of metadata, such as x-scope-orgid`,
		`keep_metadata[1]: "A" stands twice`,
		`keep_metadata[2]: "x y" is no key of metadata`,
		`sending_queue: with block_on_overflow or wait_for_result, one tenant would hold up the data of others`,
		`retry_server_errors: -1s must not be negative`,
		`drain_timeout: -1s must not be negative`)
	f("tenant_routing/nothing",
		`tenant_from: must name an attribute, e.g. k8s.namespace.name`,
		`mapping: template: is empty and there is no table, so no tenant is known`,
		`keep_metadata[0]: "X-Scope-OrgID" is metadata_key, which holds the tenant and not what a client says`)
	f("tenant_routing/after", `after keys of the request: [0]: " y" is no attribute key`)
	f("tenant_routing/headers", `trust_metadata: nothing in tenant_from is a header, such as metadata:x-org`)
	f("tenant_routing/template", `mapping: template: "no name" must have {tenant} once`)
	f("tenant_routing/table", `mapping: table: testdata/table.bad.yaml:1: shop-prod: "shop/prod" is no tenant id`)
	f("tenant_routing/null", "sending_queue::storage: is null")
	f("tenant_routing/number", "tenant_ttl: 30 has no unit: write 30s, 30m or 30h")
	f("tenant_routing/typo", "max_tenant")
	f("tenant_routing/queue", "`queue_size` must be positive")
}

func TestTheDefaultsAreValid(t *testing.T) {
	assert.NoError(t, componenttest.CheckConfigStruct(createDefaultConfig()))
	assert.NoError(t, xconfmap.Validate(createDefaultConfig()))
}
