// SPDX-License-Identifier: Apache-2.0

package slocatalogextension

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-llm/otelcol-llm/extension/slocatalogextension/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/catalog"
)

// statusHost is a Collector that notes what components report of themselves.
type statusHost struct {
	component.Host
	mu  sync.Mutex
	all []componentstatus.Status
}

func (h *statusHost) Report(e *componentstatus.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, e.Status())
}

func (h *statusHost) statuses() []componentstatus.Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]componentstatus.Status(nil), h.all...)
}

// count is the value of a counter.
func count(m metricdata.Metrics) (n int64) {
	for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
		n += p.Value
	}
	return n
}

// Scenario: SLO files are edited, broken, mended and joined by others while the Collector runs.
// Guarantees: each change is taken over within a few intervals; a broken one is reported and leaves the last good catalog.
func TestChangedFilesAreTakenOver(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "chat.yaml")
	good := document(t)
	next := filepath.Join(t.TempDir(), "next")
	write := func(name, text string) { // in one go: it is looked at all the time
		require.NoError(t, os.WriteFile(next, []byte(text), 0o600))
		require.NoError(t, os.Rename(next, name))
	}
	write(file, good)

	tel := componenttest.NewTelemetry()
	set := extensiontest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = tel.NewTelemetrySettings()
	ext, err := NewFactory().Create(t.Context(), set, &Config{Paths: []string{dir}, ReloadInterval: 5 * time.Millisecond})
	require.NoError(t, err)
	host := &statusHost{Host: componenttest.NewNopHost()}
	require.NoError(t, ext.Start(t.Context(), host))
	source := ext.(catalog.Source)
	soon := func(what string, is func() bool) {
		t.Helper()
		require.Eventually(t, is, time.Minute, time.Millisecond, what)
	}
	first := source.Catalog()
	require.Len(t, first.SLOs, 1)

	write(file, strings.Replace(good, "target: 0.95", "target: 0.9", 1))
	soon("an edit", func() bool { return source.Catalog().SLOs[0].Objective.Target == 0.9 })
	assert.InDelta(t, 0.95, first.SLOs[0].Objective.Target, 0, "who holds a catalog sees it unchanged")

	last := source.Catalog()
	write(file, strings.Replace(good, "target: 0.95", "target: 95", 1))
	soon("a mistake", func() bool { return len(host.statuses()) == 1 })
	assert.Same(t, last, source.Catalog())

	write(file, good)
	soon("its cure", func() bool { return source.Catalog().SLOs[0].Objective.Target == 0.95 })
	soon("its report", func() bool { return len(host.statuses()) == 2 })
	assert.Equal(t, []componentstatus.Status{componentstatus.StatusRecoverableError, componentstatus.StatusOK}, host.statuses())

	last = source.Catalog()
	write(file, "") // an editor that truncates before it writes
	soon("emptiness", func() bool { return len(host.statuses()) == 3 })
	assert.Same(t, last, source.Catalog())
	write(file, good)
	soon("its end", func() bool { return len(host.statuses()) == 4 })

	write(filepath.Join(dir, "other.yaml"), strings.NewReplacer("name: chat-ttft", "name: other-ttft", "slo: chat-ttft", "slo: other-ttft",
		"service: chat", "service: other").Replace(good))
	soon("another file", func() bool { return len(source.Catalog().SLOs) == 2 })
	require.NoError(t, os.Remove(filepath.Join(dir, "other.yaml")))
	soon("a file that goes", func() bool { return len(source.Catalog().SLOs) == 1 })

	for name, want := range map[string]int64{"otelcol_slo_catalog_loads": 6, "otelcol_slo_catalog_load_failures": 2} {
		m, err := tel.GetMetric(name)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, count(m), want, name)
	}
	require.NoError(t, ext.Shutdown(t.Context()))
	require.NoError(t, tel.Shutdown(t.Context()))
}

// Scenario: a Kubernetes ConfigMap is mounted: files are links to a folder that is swapped.
// Guarantees: the swap is a change.
func TestASwappedConfigMapIsAChange(t *testing.T) {
	dir := t.TempDir()
	for _, version := range []string{"..v1", "..v2"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, version), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, version, "slo.yaml"), []byte(document(t)+"# "+version), 0o600))
	}
	swap := func(to string) {
		require.NoError(t, os.Symlink(to, filepath.Join(dir, "..new")))
		require.NoError(t, os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "..data")))
	}
	swap("..v1")
	require.NoError(t, os.Symlink(filepath.Join("..data", "slo.yaml"), filepath.Join(dir, "slo.yaml")))
	before := fingerprint([]string{dir})
	assert.Equal(t, before, fingerprint([]string{dir}))
	require.NoError(t, os.Chtimes(filepath.Join(dir, "..v2", "slo.yaml"), time.Now(), time.Now().Add(time.Hour)))
	swap("..v2")
	assert.NotEqual(t, before, fingerprint([]string{dir}))
}
