// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-llm/otelcol-llm/internal/doctest"
	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/receiver/nvidiagpureceiver/internal/metadata"
)

// To write documentation.md anew: UPDATE=1 go test ./receiver/nvidiagpureceiver -run Documentation
func TestDocumentationIsCurrent(t *testing.T) {
	want := document()
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile("documentation.md", []byte(want), 0o600))
	}
	got, err := os.ReadFile("documentation.md")
	require.NoError(t, err)
	assert.Equal(t, want, string(got))
}

// document writes the table of internal/gpu: the metrics, and where each of their points comes from.
func document() string {
	var b strings.Builder
	b.WriteString("# Metrics of the nvidia_gpu receiver\n\nGenerated from the table in internal/gpu; do not edit.\n\n" +
		"Every point has `hw.id`, `hw.name` and, of a MIG instance, `hw.parent`; points of a process have `process.pid` and what else is known of it.\n\n" +
		"| metric | instrument | unit | attributes | group | default | meaning |\n|---|---|---|---|---|---|---|\n")
	for _, m := range gpu.Metrics {
		kind, attributes := m.Kind.String(), []string{}
		if m.Double {
			kind += ", double"
		} else {
			kind += ", int"
		}
		if m.Type != "" {
			attributes = append(attributes, "`hw.type` = "+m.Type)
		}
		if m.Attribute != "" {
			of := "`" + m.Attribute + "`"
			if values := valuesOf(m); values != "" {
				of += " = " + values
			}
			attributes = append(attributes, of)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s |\n", m.Name, kind, m.Unit, strings.Join(attributes, "; "), m.Group,
			map[bool]string{false: "on", true: "off"}[m.Off], m.Description)
	}
	b.WriteString("\n## Where they come from\n\nAn empty place: this source does not tell it. What a device does not support is absent, never 0.\n\n" +
		"| metric | value | NVML | DCGM field | GPM metric | a MIG instance has it | needs |\n|---|---|---|---|---|---|---|\n")
	field := func(f gpu.Field) string {
		if f.ID == 0 {
			return ""
		}
		return fmt.Sprint(f.ID)
	}
	for _, m := range gpu.Metrics {
		for p := range gpu.Points {
			if row := &gpu.Rows[p]; row.Metric == m {
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s |\n", m.Name, row.Value, row.NVML, field(row.DCGM), field(row.GPM),
					map[bool]string{true: "yes", false: "no"}[row.MIG], row.Needs)
			}
		}
	}
	return b.String()
}

func valuesOf(m *gpu.Metric) string {
	var values []string
	switch m.Attribute {
	case "hw.state":
		for s := range gpu.States {
			values = append(values, s.String())
		}
	default:
		for p := range gpu.Points {
			if gpu.Rows[p].Metric == m && gpu.Rows[p].Value != "" {
				values = append(values, gpu.Rows[p].Value)
			}
		}
	}
	return strings.Join(values, ", ")
}

func TestMetadataAgreesWithTheCode(t *testing.T) {
	described := doctest.Metadata(t, "receiver", NewFactory(), metadata.ScopeName,
		map[component.StabilityLevel][]string{metadata.Stability: {"metrics", "logs"}})
	r := newRig(t, one, nil)
	r.scrape()
	r.own.refused.Add(t.Context(), 1)
	r.own.sessions.Add(t.Context(), 1)
	r.own.eventsDropped.Add(t.Context(), 1)
	r.own.dropped.Add(t.Context(), 1)
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
		"process_interval": "`collection_interval`", "expensive_interval": "`collection_interval`", "metrics": "`{}`",
		"nvml_library": "the system's", "dcgm_library": "the system's", "dcgm_endpoint": "none", "proc_root": "`/proc`",
		"guard": "none",
	})
}

func TestREADMEHasEveryEventAndReason(t *testing.T) {
	for _, name := range []string{eventXid, eventLost, eventRecovered, eventDriverChanged, eventMIGChanged, eventProfilingStopped, eventProfilingResumed} {
		doctest.Has(t, "| `"+name+"` |")
	}
	for why := range gpu.Reasons {
		doctest.Has(t, "| `"+why.String()+"` |")
	}
	for s := range gpu.States {
		doctest.Has(t, "| `"+s.String()+"` |")
	}
	for _, x := range gpu.KnownXids {
		doctest.Has(t, fmt.Sprintf("%d %s", x.Code, x.Meaning))
	}
}

func TestREADMEExamplesAreValid(t *testing.T) {
	assert.Equal(t, 3, doctest.Examples(t, "receivers", NewFactory()))
}
