// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// Scenario: one of three SLOs is taken out of its file, while the Prometheus exporter forgets nothing by itself for an hour.
// Guarantees: all that was told of it goes at once, and nothing of the others.
func TestAnSLOThatIsTakenOutGoesFromThePrometheusExporter(t *testing.T) {
	parallel(t)
	one := strings.Split(regionalSLOs, "---\n")[1]
	catalog := func(names ...string) []byte {
		var all []string
		for _, name := range names {
			all = append(all, strings.NewReplacer("name: errors", "name: "+name, "llm:chat:errors:50", "llm:chat:"+name+":50").Replace(one))
		}
		return []byte(strings.Join(all, "---\n"))
	}
	slos := filepath.Join(t.TempDir(), "slo.yaml")
	require.NoError(t, os.WriteFile(slos, catalog("a", "b", "c"), 0o600))
	otlp, results := spawn.FreeEndpoint(t), spawn.FreeEndpoint(t)
	config := strings.NewReplacer("metric_expiration: 3s", "metric_expiration: 1h", "paths: [%[1]q]", "paths: [%[1]q], reload_interval: 100ms").Replace(deadManConfig)
	c := spawn.Start(t, spawn.Options{Configs: []string{spawn.WriteConfig(t, fmt.Sprintf(config, slos, otlp, results))}})
	c.WaitReady()
	t0 := origin()
	for step := range 60 {
		require.NoError(t, post(t.Context(), "http://"+otlp, increments(t0, step)))
	}
	// of are the series of an SLO, without what tells it from the others.
	of := func(name string) (series []string) {
		id := "llm:chat:" + name + ":50"
		for line := range strings.Lines(get(t, "http://"+results+"/metrics")) {
			if labels, _, ok := strings.Cut(line, "} "); ok && strings.Contains(labels, id) {
				series = append(series, strings.ReplaceAll(labels, id, "ID"))
			}
		}
		slices.Sort(series)
		return series
	}
	require.Eventually(t, func() bool {
		return len(of("b")) > 20 && slices.Equal(of("a"), of("b")) && slices.Equal(of("a"), of("c"))
	},
		patience, 100*time.Millisecond)
	before := of("a")
	require.NoError(t, os.WriteFile(slos, catalog("a", "c"), 0o600))
	assert.Eventually(t, func() bool { return len(of("b")) == 0 }, patience, 100*time.Millisecond)
	for _, name := range []string{"a", "c"} { // in the course of time there may be more
		assert.Subset(t, of(name), before, name)
	}
	assert.Empty(t, of("b"))
	assert.Zero(t, c.Stop())
}
