// SPDX-License-Identifier: Apache-2.0

package cudamemoryreceiver

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-llm/otelcol-llm/internal/doctest"
	"github.com/otelcol-llm/otelcol-llm/receiver/cudamemoryreceiver/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/receiver/cudamemoryreceiver/internal/probe"
)

// To write documentation.md anew: UPDATE=1 go test ./receiver/cudamemoryreceiver -run Documentation
func TestDocumentationIsCurrent(t *testing.T) {
	want := document()
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile("documentation.md", []byte(want), 0o600))
	}
	got, err := os.ReadFile("documentation.md")
	require.NoError(t, err)
	assert.Equal(t, want, string(got))
}

func document() string {
	var b strings.Builder
	b.WriteString("# Metrics of the cuda_memory receiver\n\nGenerated from the table in the code; do not edit.\n\n" +
		"Every point has `process.pid` and what else is known of the process; all are cumulative.\n\n" +
		"| metric | instrument | unit | needs | meaning |\n|---|---|---|---|---|\n")
	for _, m := range table {
		if m.attribute != "" {
			values := make([]string, len(m.parts))
			for i, part := range m.parts {
				values[i] = "`" + part.value + "`"
			}
			m = &instrument{name: m.name, unit: m.unit, kind: m.kind, description: m.description + " `" + m.attribute + "` is " + strings.Join(values, " or ") + "."}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", m.name, m.kind, m.unit,
			map[bool]string{true: "`events: {launches: true}`"}[m.launches], m.description)
	}
	return b.String()
}

func TestMetadataAgreesWithTheCode(t *testing.T) {
	described := doctest.Metadata(t, "receiver", NewFactory(), metadata.ScopeName,
		map[component.StabilityLevel][]string{metadata.Stability: {"metrics"}})
	r := newRig(t, func(cfg *Config) { cfg.MaxProcesses = 1 })
	r.kernel.add(7, 1, 0)
	r.kernel.add(8, 1, 0)
	r.kernel.drops = probe.Drops{Live: 1}
	r.pass(10 * time.Second)
	r.lose(t.Context(), errLost)
	r.pass(time.Second)
	for name, want := range described {
		got, err := r.tel.GetMetric("otelcol_" + name)
		require.NoError(t, err)
		assert.Equal(t, want, doctest.Described{Description: got.Description, Unit: got.Unit})
		doctest.Has(t, "`otelcol_"+name+"`")
	}
	assert.Len(t, described, 10)
}

func TestREADMEHasEverySettingWithItsDefault(t *testing.T) {
	doctest.Settings(t, defaults(), map[string]string{
		"libraries": "`[]`", "events": "`{launches: false}`", "proc_root": "`/proc`", "guard": "none", "metrics": "`{}`",
	})
}

func TestREADMEHasEveryReasonAndMetric(t *testing.T) {
	for _, reason := range reasons {
		doctest.Has(t, "| `"+reason.name+"` |")
	}
	for _, m := range table {
		doctest.Has(t, "`"+m.name+"`")
	}
}

func TestREADMEExamplesAreValid(t *testing.T) {
	assert.Equal(t, 3, doctest.Examples(t, "receivers", NewFactory()))
}

// Guarantees: what a pod is given by the README is what the kernel's probes and /proc take, and is where Kubernetes looks for it.
func TestThePodOfTheREADMEHasThePrivileges(t *testing.T) {
	found := false
	for _, block := range doctest.Blocks(t) {
		var pod struct {
			Spec struct {
				Template struct {
					Spec struct {
						HostPID    bool `yaml:"hostPID"`
						Containers []struct {
							SecurityContext struct {
								RunAsUser    int `yaml:"runAsUser"`
								Privileged   bool
								Capabilities struct{ Drop, Add []string }
							} `yaml:"securityContext"`
						}
					}
				}
			}
			Kind string
		}
		if yaml.Unmarshal([]byte(block), &pod) != nil || pod.Kind != "DaemonSet" {
			continue
		}
		found = true
		assert.True(t, pod.Spec.Template.Spec.HostPID)
		require.Len(t, pod.Spec.Template.Spec.Containers, 1)
		of := pod.Spec.Template.Spec.Containers[0].SecurityContext
		assert.Equal(t, []string{"ALL"}, of.Capabilities.Drop)
		assert.Equal(t, []string{"BPF", "PERFMON", "SYS_PTRACE"}, of.Capabilities.Add)
		assert.False(t, of.Privileged)
	}
	assert.True(t, found)
}
