// SPDX-License-Identifier: Apache-2.0

package gpuguardextension

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension/extensiontest"

	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/gpuwatch"
)

// What whoever sees an allocation pays for telling it, the guard's own histogram included.
func BenchmarkLive(b *testing.B) {
	tel := componenttest.NewTelemetry()
	set := extensiontest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = tel.NewTelemetrySettings()
	cfg := defaults()
	cfg.KubeletSocket = ""
	ext, err := NewFactory().Create(b.Context(), set, cfg)
	require.NoError(b, err)
	require.NoError(b, ext.Start(b.Context(), componenttest.NewNopHost()))
	watcher := ext.(gpuwatch.Watcher)
	watcher.Device(gpuwatch.Device{ID: gpu, Total: 1 << 50, At: time.Now().UnixNano()})
	l := gpuwatch.Live{Process: gpuwatch.Process{PID: 42, StartTime: 7}, Device: gpu}
	b.ReportAllocs()
	for b.Loop() {
		l.Bytes++
		l.At = now()
		watcher.Live(l)
	}
	require.NoError(b, ext.Shutdown(context.Background()))
	require.NoError(b, tel.Shutdown(context.Background()))
}
