// SPDX-License-Identifier: Apache-2.0

package slocatalogextension

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-llm/otelcol-llm/extension/slocatalogextension/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/catalog"
	"github.com/otelcol-llm/otelcol-llm/internal/lifecycletest"
)

func created(t testing.TB, set extension.Settings, paths ...string) extension.Extension {
	t.Helper()
	ext, err := NewFactory().Create(t.Context(), set, &Config{Paths: paths})
	require.NoError(t, err)
	return ext
}

func started(t *testing.T, tel *componenttest.Telemetry, paths ...string) extension.Extension {
	t.Helper()
	set := extensiontest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = tel.NewTelemetrySettings()
	ext := created(t, set, paths...)
	require.NoError(t, ext.Start(t.Context(), componenttest.NewNopHost()))
	return ext
}

type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

func TestComponentsFindWhatTheFilesPromise(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	set := extensiontest.NewNopSettings(metadata.Type)
	set.Logger = zap.New(core)
	ext := created(t, set, "builtin:vllm", "builtin:vllm")
	src, err := catalog.From(host{catalog.DefaultID: ext}, catalog.DefaultID)
	require.NoError(t, err)
	assert.Empty(t, src.Catalog().SLOs, "asked too early, the catalog is empty and not nil")

	require.NoError(t, ext.Start(t.Context(), componenttest.NewNopHost()))
	assert.Len(t, src.Catalog().SLOs, 7)
	require.Equal(t, 1, logs.Len())
	assert.Equal(t, "SLO catalog loaded", logs.All()[0].Message)
	assert.Equal(t, map[string]any{"slos": int64(7), "services": int64(1), "policies": int64(3), "files": int64(1)}, logs.All()[0].ContextMap())

	require.NoError(t, ext.Shutdown(t.Context()))
	assert.Len(t, src.Catalog().SLOs, 7, "pipelines that drain after it still have their catalog")
}

// Scenario: files with mistakes. Guarantees: the Collector does not start, and every mistake is told.
func TestABrokenPromiseKeepsTheCollectorFromStarting(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("a.yaml", []byte("apiVersion: openslo/v1\nkind: Service\nmetadata: {name: A}\n"), 0o600))
	require.NoError(t, os.WriteFile("b.yaml", []byte("apiVersion: openslo/v1\nkind: Servce\nmetadata: {name: b}\n"), 0o600))
	require.NoError(t, os.WriteFile("c.yaml", []byte(`apiVersion: openslo/v1
kind: SLI
metadata: {name: ttft}
spec:
  thresholdMetric:
    metricSource:
      type: opentelemetry
      spec:
        metric: a_seconds
        condition: attributes["model_name"] == "qwen"
`), 0o600))
	ext := created(t, extensiontest.NewNopSettings(metadata.Type), "*.yaml", "missing")
	require.EqualError(t, ext.Start(t.Context(), componenttest.NewNopHost()), `4 problems in the SLO files:
a.yaml:3: metadata.name: "A" is no RFC 1123 name: write up to 63 lower case letters, digits and inner dashes, e.g. chat-ttft
b.yaml:2: kind: "Servce" is not known: write Service, DataSource, AlertNotificationTarget, AlertCondition, AlertPolicy, SLI, SLO, ViolationPolicy or MaintenanceWindow (did you mean Service?)
c.yaml:10: spec.thresholdMetric.metricSource.spec.condition: is no OTTL condition: attributes[model_name] does not say what it belongs to: write datapoint.attributes[model_name], or metric, scope or resource before the dot; text stands in quotes
missing: no such file or directory: correct the path`)
	require.NoError(t, ext.Shutdown(t.Context()))
}

func TestWhatNobodyMeasuresIsLogged(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("empty.yaml", nil, 0o600))
	require.NoError(t, os.WriteFile("foreign.yaml", []byte(`apiVersion: openslo/v1
kind: SLO
metadata: {name: search}
spec:
  service: shop
  indicator: {metadata: {name: latency}, spec: {thresholdMetric: {metricSource: {type: Prometheus, spec: {query: x}}}}}
  timeWindow: [{duration: 2w, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{op: lt, value: 500, target: 0.99}]
`), 0o600))
	require.NoError(t, os.WriteFile("composite.yaml", []byte(`apiVersion: openslo/v1
kind: SLO
metadata: {name: experience}
spec:
  service: shop
  timeWindow: [{duration: 2w, isRolling: true}]
  budgetingMethod: Occurrences
  objectives:
    - indicator: {metadata: {name: latency}, spec: {thresholdMetric: {metricSource: {type: opentelemetry, spec: {metric: a_seconds}}}}}
      op: lt
      value: 0.5
      target: 0.99
    - indicator: {metadata: {name: other}, spec: {ratioMetric: {rawType: success, raw: {metricSource: {type: Datadog, spec: {query: a}}}}}}
      target: 0.99
`), 0o600))
	f := func(path, wantMessage string, wantFields ...map[string]any) {
		t.Helper()
		core, logs := observer.New(zap.WarnLevel)
		set := extensiontest.NewNopSettings(metadata.Type)
		set.Logger = zap.New(core)
		ext := created(t, set, path)
		require.NoError(t, ext.Start(t.Context(), componenttest.NewNopHost()))
		require.Equal(t, len(wantFields), logs.Len())
		for i, want := range wantFields {
			assert.Equal(t, wantMessage, logs.All()[i].Message)
			assert.Equal(t, want, logs.All()[i].ContextMap())
		}
		require.NoError(t, ext.Shutdown(t.Context()))
	}
	f("empty.yaml", "SLO catalog has no SLO, so nothing will be evaluated", map[string]any{"paths": []any{"empty.yaml"}})
	f("foreign.yaml", "SLOs are not evaluated here", map[string]any{
		"reason":  "its metricSource is of type Prometheus, which another tool measures, and not opentelemetry",
		"slo_ids": []any{"llm:shop:latency:p99"},
	})
	f("composite.yaml", "SLOs are not evaluated here", map[string]any{
		"reason":  "its metricSource is of type Datadog, which another tool measures, and not opentelemetry",
		"slo_ids": []any{"llm:shop:experience:other-99"},
	}, map[string]any{
		"reason":  "its part llm:shop:experience:other-99 is not: its metricSource is of type Datadog, which another tool measures, and not opentelemetry",
		"slo_ids": []any{"llm:shop:experience:composite"},
	})
}

func TestTheSizeOfTheCatalogIsAMetricUntilShutdown(t *testing.T) {
	tel := componenttest.NewTelemetry()
	ext := started(t, tel, "builtin:vllm")
	m, err := tel.GetMetric("otelcol_slo_catalog_slos")
	require.NoError(t, err)
	metricdatatest.AssertEqual(t, metricdata.Gauge[int64]{DataPoints: []metricdata.DataPoint[int64]{{Value: 7}}},
		m.Data.(metricdata.Gauge[int64]), metricdatatest.IgnoreTimestamp())

	require.NoError(t, ext.Shutdown(t.Context()))
	_, err = tel.GetMetric("otelcol_slo_catalog_slos")
	require.Error(t, err, "a component that is gone must not be observed")
	require.NoError(t, tel.Shutdown(t.Context()))
}

func TestLifecycle(t *testing.T) {
	lifecycletest.Test(t, componenttest.NewNopHost(),
		func(t testing.TB) component.Component {
			return created(t, extensiontest.NewNopSettings(metadata.Type), "builtin:vllm")
		}, nil)
}

func TestTheDefaultConfigurationIsAStruct(t *testing.T) {
	require.NoError(t, componenttest.CheckConfigStruct(NewFactory().CreateDefaultConfig()))
}
