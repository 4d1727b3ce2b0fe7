// SPDX-License-Identifier: Apache-2.0

package emit

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Settings are a component's setting `metrics`: which of its metrics are written, by their names. Others are by default.
type Settings map[string]MetricSetting

// MetricSetting is what can be set of a metric.
type MetricSetting struct {
	// Enabled says whether the metric is written.
	Enabled *bool `mapstructure:"enabled"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Check reports every problem at once, for the Validate method of a component's Config.
func (s Settings) Check(table []*Metric) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if find(table, name) == nil {
			errs = append(errs, fmt.Errorf("metrics: unknown metric %q: %s", name, instead(table, name)))
		} else if s[name].Enabled == nil {
			errs = append(errs, fmt.Errorf("metrics::%s: says nothing: write enabled: true or enabled: false", name))
		}
	}
	return errors.Join(errs...)
}

// Enabled is what is written of the metrics of a table.
func (s Settings) Enabled(table []*Metric) Enabled {
	var e Enabled
	for name, setting := range s {
		if m := find(table, name); m != nil && setting.Enabled != nil {
			if e.set == nil {
				e.set = map[*Metric]bool{}
			}
			e.set[m] = *setting.Enabled
		}
	}
	return e
}

// Enabled tells which metrics are written; the zero Enabled writes those that are on by default.
type Enabled struct {
	set map[*Metric]bool // to something else than, or the same as, the default
}

// Has reports whether a metric is written: what serves none that is need not be computed.
func (e Enabled) Has(m *Metric) bool {
	if on, ok := e.set[m]; ok {
		return on
	}
	return m.Default
}

func find(table []*Metric, name string) *Metric {
	for _, m := range table {
		if m.Name == name {
			return m
		}
	}
	return nil
}

// instead says what would be right: the name that was most likely meant, or all that there are.
func instead(table []*Metric, name string) string {
	names := make([]string, len(table))
	for i, m := range table {
		names[i] = m.Name
		if near(m.Name, name) {
			return fmt.Sprintf("did you mean %s?", m.Name)
		}
	}
	return "write one of " + strings.Join(names, ", ")
}

// near reports whether a name is another in Prometheus' spelling, or differs in one place by two letters at most.
func near(name, written string) bool {
	written = strings.ReplaceAll(strings.ToLower(written), "_", ".")
	name = strings.ReplaceAll(name, "_", ".")
	for _, suffix := range []string{"", ".total", ".ratio", ".seconds", ".bytes"} {
		if written == name+suffix {
			return true
		}
	}
	longer := max(len(name), len(written))
	for len(name) > 0 && len(written) > 0 && name[0] == written[0] {
		name, written, longer = name[1:], written[1:], longer-1
	}
	for len(name) > 0 && len(written) > 0 && name[len(name)-1] == written[len(written)-1] {
		name, written, longer = name[:len(name)-1], written[:len(written)-1], longer-1
	}
	return longer <= 2
}
