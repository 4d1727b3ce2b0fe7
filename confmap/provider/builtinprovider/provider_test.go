// SPDX-License-Identifier: Apache-2.0

package builtinprovider

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func TestSchemeIsValid(t *testing.T) {
	assert.NoError(t, confmaptest.ValidateProviderScheme(newProvider(zap.NewNop())))
}

func TestNamesAreThePromisedOnes(t *testing.T) {
	assert.Equal(t, []string{"agent", "all-in-one", "dcgm-exporter", "gateway", "gateway-kafka", "gateway-part", "judge"}, Names())
}

func TestUnknownNameListsTheKnownOnes(t *testing.T) {
	for _, uri := range []string{"builtin:all-in-two", "builtin:", "builtin:../configs/all-in-one", "builtin:all-in-one.yaml"} {
		_, err := newProvider(zap.NewNop()).Retrieve(context.Background(), uri, nil)
		assert.EqualError(t, err, fmt.Sprintf("%q is not a built-in configuration; known: builtin:agent, "+
			"builtin:all-in-one, builtin:dcgm-exporter, builtin:gateway, builtin:gateway-kafka, builtin:gateway-part, builtin:judge", uri))
	}
}

func TestTheHostHasAName(t *testing.T) {
	got, err := newProvider(zap.NewNop()).Retrieve(t.Context(), "builtin:hostname", nil)
	require.NoError(t, err)
	host, err := os.Hostname()
	require.NoError(t, err)
	raw, err := got.AsRaw()
	require.NoError(t, err)
	assert.Equal(t, host, raw)
}

func TestOtherSchemeIsRefused(t *testing.T) {
	_, err := newProvider(zap.NewNop()).Retrieve(context.Background(), "file:all-in-one", nil)
	assert.ErrorContains(t, err, "not supported")
}

func TestUseIsAnnounced(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	_, err := newProvider(zap.New(core)).Retrieve(context.Background(), "builtin:all-in-one", nil)
	require.NoError(t, err)
	require.Equal(t, 1, logs.Len())
	assert.Equal(t, "builtin:all-in-one", logs.All()[0].ContextMap()["config"])
}

func TestNilLoggerIsFine(t *testing.T) {
	p := NewFactory().Create(confmap.ProviderSettings{})
	_, err := p.Retrieve(context.Background(), "builtin:all-in-one", nil)
	assert.NoError(t, err)
	assert.NoError(t, p.Shutdown(context.Background()))
}

// Guarantees: with no variable set, nothing in a built-in configuration listens or connects beyond this machine.
func TestEverythingIsOnLocalhost(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			addresses := 0
			walk("", resolve(t, "builtin:"+name), func(path string, value any) {
				host, ok := address(path, value)
				if ok {
					addresses++
					assert.Equal(t, "localhost", host, path)
				}
			})
			least := map[string]int{"dcgm-exporter": 3, "gateway-kafka": 3, "gateway-part": 1, "judge": 1} // small, or laid over others
			assert.GreaterOrEqual(t, addresses, cmp.Or(least[name], 5), "the walk has not found the addresses that are there")
		})
	}
}

// Guarantees: the test above cannot pass because it does not recognise an address.
func TestAddressesAreRecognised(t *testing.T) {
	for path, value := range map[string]any{
		"receivers::otlp::protocols::grpc::endpoint":          "0.0.0.0:4317",
		"exporters::x::endpoint":                              "0.0.0.0:4317",
		"exporters::otlp_http::metrics_endpoint":              "http://0.0.0.0:4317/v1",
		"a::static_configs::0::targets::0":                    "0.0.0.0:8000",
		"service::telemetry::metrics::readers::0::pull::host": "0.0.0.0",
	} {
		host, ok := address(path, value)
		assert.True(t, ok, path)
		assert.Equal(t, "0.0.0.0", host, path)
	}
	for path, value := range map[string]any{"a::path": "./x/y.jsonl", "a::scrape_interval": "5s", "a::paths::0": "builtin:vllm", "a::n": 8888} {
		_, ok := address(path, value)
		assert.False(t, ok, path)
	}
}

func TestVariables(t *testing.T) {
	const (
		targets = "receivers::prometheus/llm::config::scrape_configs"
		paths   = "extensions::slo_catalog::paths"
	)
	firstTargets := func(c *confmap.Conf) any {
		job := c.Get(targets).([]any)[0].(map[string]any)
		return job["static_configs"].([]any)[0].(map[string]any)["targets"]
	}

	t.Run("defaults", func(t *testing.T) {
		c := confmap.NewFromStringMap(resolve(t, "builtin:all-in-one"))
		assert.Equal(t, []any{"localhost:8000"}, firstTargets(c))
		assert.Equal(t, "builtin:vllm", c.Get(paths))
		assert.Equal(t, "./otelcol-llm-data/slo-events.jsonl", c.Get("exporters::file/slo_events::path"))
		assert.Equal(t, "./otelcol-llm-data/state", c.Get("extensions::file_storage::directory"))
		assert.Equal(t, "./otelcol-llm-data/tsdb", c.Get("exporters::tsdb::directory"))
		assert.Equal(t, 1024, c.Get("processors::memory_limiter::limit_mib"))
	})
	t.Run("set", func(t *testing.T) {
		t.Setenv("LLM_METRICS_TARGETS", "127.0.0.1:8000, vllm-1.llm.svc:8000")
		t.Setenv("SLO_CATALOG", "*.yaml,builtin:vllm")
		t.Setenv("OTELCOL_LLM_HOST", "0.0.0.0")
		t.Setenv("OTELCOL_LLM_DATA", "/var/lib/otelcol-llm")
		t.Setenv("OTELCOL_LLM_MEMORY_MIB", "4096")
		t.Setenv("LLM_SCRAPE_INTERVAL", "1s")
		c := confmap.NewFromStringMap(resolve(t, "builtin:all-in-one"))
		assert.Equal(t, []any{"127.0.0.1:8000", "vllm-1.llm.svc:8000"}, firstTargets(c))
		// A list with commas, which the Collector splits: what begins with * or [ is no YAML.
		assert.Equal(t, "*.yaml,builtin:vllm", c.Get(paths))
		assert.Equal(t, "0.0.0.0:4317", c.Get("receivers::otlp::protocols::grpc::endpoint"))
		assert.Equal(t, "0.0.0.0:8686", c.Get("extensions::console::endpoint"))
		// The console asks where the database listens.
		assert.Equal(t, "0.0.0.0:9191", c.Get("exporters::tsdb::endpoint"))
		assert.Equal(t, "http://0.0.0.0:9191", c.Get("extensions::console::query_url"))
		assert.Equal(t, "/var/lib/otelcol-llm/slo-events.jsonl", c.Get("exporters::file/slo_events::path"))
		assert.Equal(t, "/var/lib/otelcol-llm/state", c.Get("extensions::file_storage::directory"))
		assert.Equal(t, "/var/lib/otelcol-llm/tsdb", c.Get("exporters::tsdb::directory"))
		assert.Equal(t, 4096, c.Get("processors::memory_limiter::limit_mib"))
	})
}

// Guarantees: what has to be told where the halves of a cluster run can be told by variables.
func TestVariablesOfAgentAndGateway(t *testing.T) {
	for name, value := range map[string]string{
		"OTELCOL_LLM_EXPORTER": "kafka", "OTELCOL_LLM_GATEWAY": "gateway:4317", "OTELCOL_LLM_GATEWAY_INSECURE": "false",
		"OTELCOL_LLM_K8S_PASSTHROUGH": "false", "K8S_NODE_NAME": "node-7", "KAFKA_BROKERS": "kafka-0:9092,kafka-1:9092",
		"KAFKA_SESSION_TIMEOUT": "5m", "HOSTNAME": "gateway-3", "METRICS_ENDPOINT": "https://mimir/otlp", "LOGS_ENDPOINT": "https://loki/otlp",
		"TRACES_ENDPOINT": "tempo:4317", "TRACES_INSECURE": "false", "METRICS_QUERY": "https://mimir/prometheus", "TRACE_URL": "https://jaeger/trace/",
		"OTELCOL_LLM_TENANT": "platform", "OTELCOL_LLM_PATIENCE": "10m", "OTELCOL_LLM_QUEUE_BYTES": "5",
		"OTELCOL_LLM_MAX_GATEWAYS": "8", "OTELCOL_LLM_GATEWAY_TTL": "2h", "NVML_LIBRARY": "/opt/libnvidia-ml.so.1",
	} {
		t.Setenv(name, value)
	}
	f := func(uris []string, want map[string]any) {
		t.Helper()
		c := confmap.NewFromStringMap(resolve(t, uris...))
		for path, value := range want {
			assert.Equal(t, value, c.Get(path), path)
		}
	}
	brokers := []any{"kafka-0:9092", "kafka-1:9092"}
	f([]string{"builtin:agent"}, map[string]any{
		"service::pipelines::metrics/out::exporters": []any{"kafka"},
		"service::pipelines::traces/out::exporters":  []any{"kafka"},
		"service::pipelines::logs/out::exporters":    []any{"kafka"},
		"receivers::nvidia_gpu::nvml_library":        "/opt/libnvidia-ml.so.1",
		"processors::resource/node::attributes": []any{
			map[string]any{"key": "host.name", "value": "node-7", "action": "insert"},
			map[string]any{"key": "service.namespace", "value": "platform", "action": "insert"},
		},
		"exporters::kafka::brokers":                                  brokers,
		"exporters::otlp_grpc::endpoint":                             "gateway:4317",
		"exporters::otlp_grpc::tls::insecure":                        false,
		"connectors::tenant_routing::sending_queue::queue_size":      5,
		"processors::k8s_attributes::passthrough":                    false,
		"processors::k8s_attributes::filter::node":                   "node-7",
		"processors::transform/claims::trace_statements":             []any{`delete_matching_keys(resource.attributes, "^k8s\\.") where "false" == "false"`},
		"service::telemetry::resource::service.instance.id":          "gateway-3",
		"extensions::file_storage/queue::directory":                  "./otelcol-llm-data/queue",
		"receivers::otlp::protocols::grpc::endpoint":                 "localhost:4317",
		"exporters::kafka::partition_metrics_by_resource_attributes": true,
	})
	f([]string{"builtin:gateway", "builtin:gateway-kafka", "builtin:gateway-part"}, map[string]any{
		"exporters::otlp_http/metrics::endpoint":     "https://mimir/otlp",
		"exporters::otlp_http/logs::endpoint":        "https://loki/otlp",
		"exporters::otlp_grpc/traces::endpoint":      "tempo:4317",
		"exporters::otlp_grpc/traces::tls::insecure": false,
		"extensions::console::query_url":             "https://mimir/prometheus",
		"extensions::console::trace_url":             "https://jaeger/trace/{trace_id}",
		"receivers::kafka/logs::brokers":             brokers,
		"receivers::kafka/logs::group_id":            "otelcol-llm-logs",
		"receivers::kafka/logs::group_instance_id":   "gateway-3",
		"receivers::kafka/logs::session_timeout":     "5m",
		"connectors::slo::series_ttl":                "5m",
		"exporters::kafka/parts::brokers":            brokers,
		"service::pipelines::metrics::receivers":     []any{"otlp", "kafka/metrics"},
	})
	f([]string{"builtin:gateway", "builtin:judge"}, map[string]any{
		"receivers::kafka/parts::brokers":        brokers,
		"connectors::slo::idle_timeout":          "10m",
		"connectors::slo::max_parts":             8,
		"connectors::slo::part_ttl":              "2h",
		"service::pipelines::metrics::receivers": []any{"kafka/parts"},
	})
}

// Guarantees: what dcgm-exporter says goes where everything else goes when builtin:all-in-one comes after it.
func TestTheConfigurationForDcgmExporterGoesBeforeOthers(t *testing.T) {
	const pipeline = "service::pipelines::metrics/dcgm_exporter::exporters"
	alone := confmap.NewFromStringMap(resolve(t, "builtin:all-in-one"))
	both := confmap.NewFromStringMap(resolve(t, "builtin:dcgm-exporter", "builtin:all-in-one"))
	assert.Equal(t, []any{"forward/raw"}, both.Get(pipeline))
	for _, key := range []string{"service::pipelines::metrics/prometheus", "exporters::prometheus", "service::telemetry"} {
		require.NotNil(t, alone.Get(key), key)
		assert.Equal(t, alone.Get(key), both.Get(key), key)
	}
	// What a scraped target has ended is shown for so long: less by itself than with verdicts, which have to last for a window.
	const expiration = "exporters::prometheus::metric_expiration"
	assert.Equal(t, "2m", confmap.NewFromStringMap(resolve(t, "builtin:dcgm-exporter")).Get(expiration))
	assert.Equal(t, "15m", both.Get(expiration))
	t.Setenv("DCGM_EXPORTER_TARGETS", "gpu-0:9400, gpu-1:9400")
	set := confmap.NewFromStringMap(resolve(t, "builtin:dcgm-exporter"))
	job := set.Get("receivers::prometheus/dcgm_exporter::config::scrape_configs").([]any)[0].(map[string]any)
	assert.Equal(t, []any{"gpu-0:9400", "gpu-1:9400"}, job["static_configs"].([]any)[0].(map[string]any)["targets"])
}

func TestLaterConfigOverrides(t *testing.T) {
	c := confmap.NewFromStringMap(resolve(t, "builtin:all-in-one", "yaml:receivers::otlp::protocols::grpc::endpoint: localhost:14317"))
	assert.Equal(t, "localhost:14317", c.Get("receivers::otlp::protocols::grpc::endpoint"))
	assert.Equal(t, "localhost:4318", c.Get("receivers::otlp::protocols::http::endpoint"))
}

func newProvider(logger *zap.Logger) confmap.Provider {
	return NewFactory().Create(confmap.ProviderSettings{Logger: logger})
}

// resolve does what the binary does with --config: providers, ${…} and merging.
func resolve(t *testing.T, uris ...string) map[string]any {
	t.Helper()
	resolver, err := confmap.NewResolver(confmap.ResolverSettings{
		URIs:              uris,
		ProviderFactories: []confmap.ProviderFactory{NewFactory(), envprovider.NewFactory(), yamlprovider.NewFactory()},
		DefaultScheme:     "env",
	})
	require.NoError(t, err)
	conf, err := resolver.Resolve(context.Background())
	require.NoError(t, err)
	return conf.ToStringMap()
}

// walk calls visit for every value that is neither a map nor a list.
func walk(path string, value any, visit func(path string, value any)) {
	join := func(key string) string {
		if path == "" {
			return key
		}
		return path + "::" + key
	}
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			walk(join(key), child, visit)
		}
	case []any:
		for i, child := range v {
			walk(join(fmt.Sprint(i)), child, visit)
		}
	default:
		visit(path, value)
	}
}

var (
	addressKeys = []string{"endpoint", "host", "targets", "address", "url", "brokers"}
	hostPort    = regexp.MustCompile(`^(?:[a-z]+://)?(\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]*):\d+(?:/.*)?$`)
)

// address returns the host when the value is an address: it looks like host:port, or its key says so.
func address(path string, value any) (host string, ok bool) {
	text, isText := value.(string)
	if !isText {
		return "", false
	}
	if m := hostPort.FindStringSubmatch(text); m != nil {
		return m[1], true
	}
	keys := strings.Split(path, "::")
	named := slices.ContainsFunc(keys[max(0, len(keys)-2):], func(key string) bool {
		return slices.ContainsFunc(addressKeys, func(name string) bool { return key == name || strings.HasSuffix(key, "_"+name) })
	})
	if !named {
		return "", false
	}
	if host, _, err := net.SplitHostPort(text); err == nil {
		return host, true
	}
	return text, true
}
