// SPDX-License-Identifier: Apache-2.0

package gpuguardreceiver

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/otelcol-llm/otelcol-llm/internal/configtest"
	"github.com/otelcol-llm/otelcol-llm/internal/doctest"
	"github.com/otelcol-llm/otelcol-llm/internal/gpuaction"
	"github.com/otelcol-llm/otelcol-llm/internal/lifecycletest"
	"github.com/otelcol-llm/otelcol-llm/receiver/gpuguardreceiver/internal/metadata"
)

// guard is an extension that tells what it is told.
type guard struct {
	component.StartFunc
	component.ShutdownFunc
	mu   sync.Mutex
	take func(gpuaction.Action)
}

func (g *guard) Subscribe(take func(gpuaction.Action)) func() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.take = take
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.take = nil
	}
}

type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

func defaults() *Config { return createDefaultConfig().(*Config) }

func started(t *testing.T, tel *componenttest.Telemetry, cfg *Config, next consumer.Logs) *guard {
	t.Helper()
	set := receivertest.NewNopSettings(metadata.Type)
	if tel != nil {
		set.TelemetrySettings = tel.NewTelemetrySettings()
	}
	g := &guard{}
	r, err := NewFactory().CreateLogs(t.Context(), set, cfg, next)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), host{gpuaction.DefaultID: g}))
	t.Cleanup(func() { require.NoError(t, r.Shutdown(context.Background())) })
	return g
}

var killed = gpuaction.Action{
	ID: "a1", At: 1_700_000_000_000_000_000, Outcome: gpuaction.Killed, Method: "kill", Rule: "batch", Trigger: gpuaction.Threshold, Threshold: 0.85, AboveFor: 3,
	Device: "GPU-1", Used: 90, Total: 100, Process: gpuaction.Process{PID: 42, Executable: "python3", UID: -1, Namespace: "batch"}, Duration: 10.5,
}

func TestAnActionIsAnEvent(t *testing.T) {
	into := new(consumertest.LogsSink)
	started(t, nil, defaults(), into).take(killed)
	require.Eventually(t, func() bool { return into.LogRecordCount() == 1 }, time.Minute, time.Millisecond)
	record := into.AllLogs()[0].ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
	assert.Equal(t, "gpu_guard.action", record.EventName())
	assert.Equal(t, plog.SeverityNumberWarn, record.SeverityNumber())
	assert.Equal(t, killed.At, int64(record.Timestamp()))
	assert.Equal(t, "process 42 (python3) was killed 10.5 s after it was asked to end; memory of GPU-1 was at 85 % or above for 3 s and is at 90 %", record.Body().Str())
	assert.Equal(t, map[string]any{
		"gpu_guard.action.id": "a1", "gpu_guard.outcome": "killed", "gpu_guard.dry_run": false, "gpu_guard.method": "kill", "gpu_guard.rule": "batch",
		"gpu_guard.trigger": "threshold", "gpu_guard.threshold": 0.85, "gpu_guard.above_for": 3.0, "hw.id": "GPU-1", "gpu_guard.device.used": int64(90),
		"gpu_guard.device.limit": int64(100), "process.pid": int64(42), "process.executable.name": "python3", "k8s.namespace.name": "batch", "gpu_guard.duration": 10.5,
	}, record.Attributes().AsRaw())
}

func TestSeveritySaysHowBadItIs(t *testing.T) {
	f := func(outcome gpuaction.Outcome, want plog.SeverityNumber) {
		t.Helper()
		assert.Equal(t, want, severityOf(&gpuaction.Action{Outcome: outcome}))
	}
	f(gpuaction.Termed, plog.SeverityNumberWarn)
	f(gpuaction.Stuck, plog.SeverityNumberError)
	f(gpuaction.Interrupted, plog.SeverityNumberError)
	f(gpuaction.Refused, plog.SeverityNumberInfo)
	f(gpuaction.WouldTerm, plog.SeverityNumberInfo)
}

// slow is a consumer that answers as it is told to.
type slow struct {
	consumertest.LogsSink
	answers chan error
}

func (s *slow) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	if err := <-s.answers; err != nil {
		return err
	}
	return s.LogsSink.ConsumeLogs(ctx, ld)
}

// Scenario: the consumer refuses for a while, as an exporter whose queue is full.
// Guarantees: what was done meanwhile is told once it takes, and nothing twice.
func TestAnEventWaitsForItsConsumer(t *testing.T) {
	into := &slow{answers: make(chan error)}
	g := started(t, nil, defaults(), into)
	for range 2 { // before there is an answer to the first
		g.take(killed)
	}
	into.answers <- errors.New("full")
	into.answers <- nil
	require.Eventually(t, func() bool { return into.LogRecordCount() == 2 }, time.Minute, time.Millisecond)
}

// Guarantees: a consumer that never takes costs memory for max_pending events, and each that is lost is counted.
func TestWhatIsTooMuchIsDroppedAndCounted(t *testing.T) {
	tel := componenttest.NewTelemetry()
	cfg := defaults()
	cfg.MaxPending = 3
	into := &slow{answers: make(chan error)}
	g := started(t, tel, cfg, into)
	for range 6 { // before there is an answer to the first
		g.take(killed)
	}
	into.answers <- errors.New("full")
	into.answers <- nil
	require.Eventually(t, func() bool { return into.LogRecordCount() == 3 }, time.Minute, time.Millisecond)
	g.take(killed)
	into.answers <- consumererror.NewPermanent(errors.New("never"))
	require.Eventually(t, func() bool {
		got, err := tel.GetMetric("otelcol_gpu_guard_events_dropped")
		return err == nil && sum(t, got) == 3+1
	}, time.Minute, time.Millisecond)
	require.NoError(t, tel.Shutdown(t.Context()))
}

func TestWithoutTheExtensionItDoesNotStart(t *testing.T) {
	r, err := NewFactory().CreateLogs(t.Context(), receivertest.NewNopSettings(metadata.Type), defaults(), consumertest.NewNop())
	require.NoError(t, err)
	require.EqualError(t, r.Start(t.Context(), componenttest.NewNopHost()),
		`guard: no extension "gpu_guard" is running: add it under extensions and service::extensions`)
	require.EqualError(t, r.Start(t.Context(), host{gpuaction.DefaultID: struct{ component.Component }{}}), `guard: extension "gpu_guard" is no gpu_guard`)
}

func TestLifecycle(t *testing.T) {
	g := &guard{}
	lifecycletest.Test(t, host{gpuaction.DefaultID: g}, func(t testing.TB) receiver.Logs {
		r, err := NewFactory().CreateLogs(t.Context(), receivertest.NewNopSettings(metadata.Type), defaults(), consumertest.NewNop())
		require.NoError(t, err)
		return r
	}, func(testing.TB, receiver.Logs) { g.take(killed) })
}

func TestConfigurationsAreReadAsWritten(t *testing.T) {
	cfg, err := configtest.Read(t, "testdata/config.yaml", "gpu_guard", defaults())
	require.NoError(t, err)
	assert.Equal(t, defaults(), cfg)
	cfg, err = configtest.Read(t, "testdata/config.yaml", "gpu_guard/full", defaults())
	require.NoError(t, err)
	assert.Equal(t, &Config{Guard: component.MustNewIDWithName("gpu_guard", "batch"), MaxPending: 10}, cfg)
}

func TestAWrongConfigurationNamesItsKeyAndTheCure(t *testing.T) {
	f := func(section, want string) {
		t.Helper()
		configtest.Refused(t, "testdata/config.bad.yaml", section, defaults(), want)
	}
	f("gpu_guard/pending", "max_pending: 0 must be at least 1")
	f("gpu_guard/null", "guard: is null")
	f("gpu_guard/typo", "has invalid keys: gard")
}

func TestMetadataAgreesWithTheCode(t *testing.T) {
	described := doctest.Metadata(t, "receiver", NewFactory(), metadata.ScopeName, map[component.StabilityLevel][]string{metadata.Stability: {"logs"}})
	tel := componenttest.NewTelemetry()
	own, err := newTelemetry(tel.NewTelemetrySettings(), component.NewID(metadata.Type))
	require.NoError(t, err)
	own.lost(t.Context(), 1)
	for name, want := range described {
		got, err := tel.GetMetric("otelcol_" + name)
		require.NoError(t, err)
		assert.Equal(t, want, doctest.Described{Description: got.Description, Unit: got.Unit})
		doctest.Has(t, "`otelcol_"+name+"`")
	}
	assert.Len(t, described, 1)
	require.NoError(t, tel.Shutdown(t.Context()))
}

func TestREADMEHasEverySettingWithItsDefault(t *testing.T) {
	doctest.Settings(t, defaults(), nil)
	assert.Equal(t, 1, doctest.Examples(t, "receivers", NewFactory()))
}
