// SPDX-License-Identifier: Apache-2.0

package emit

import (
	"fmt"
	"strings"
)

// Kind is the shape of a metric.
type Kind int

const (
	// Gauge holds doubles.
	Gauge Kind = iota
	// Counter is a cumulative monotonic sum of integers.
	Counter
	// StateSet is a gauge of 0 and 1 with one point a state, of which exactly one is 1 (OpenMetrics).
	StateSet
	// Histogram has explicit boundaries and is delta.
	Histogram
	// ExponentialHistogram is delta.
	ExponentialHistogram
	// Distribution is a Histogram or an ExponentialHistogram, as what it was made of.
	Distribution
)

func (k Kind) String() string {
	return [...]string{"gauge", "counter", "state set", "histogram, delta", "exponential histogram, delta", "histogram or exponential histogram, delta"}[k]
}

// Metric describes a metric that a component emits.
type Metric struct {
	Name        string
	Description string
	Unit        string // UCUM; empty where an attribute says it
	Kind        Kind
	Default     bool     // written where the settings do not say otherwise
	Attributes  []string // beyond those that all points of the component carry; for documentation
	States      []string // of a StateSet, the values of the attribute state
}

// Document writes the table of metrics as Markdown, for a component's documentation.md.
func Document(title string, metrics []*Metric) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\nGenerated from the table in the code; do not edit.\n\n", title)
	b.WriteString("| metric | kind | unit | attributes | default | meaning |\n|---|---|---|---|---|---|\n")
	for _, m := range metrics {
		attributes := append([]string(nil), m.Attributes...)
		if m.Kind == StateSet {
			attributes = append(attributes, "`state` = "+strings.Join(m.States, ", "))
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n",
			m.Name, m.Kind, m.Unit, strings.Join(attributes, "; "), map[bool]string{true: "on", false: "off"}[m.Default], m.Description)
	}
	return b.String()
}
