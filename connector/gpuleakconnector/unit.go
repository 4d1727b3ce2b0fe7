// SPDX-License-Identifier: Apache-2.0

package gpuleakconnector

import (
	"cmp"
	"strings"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/connector/gpuleakconnector/internal/leak"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// scaleOf is what a number of a metric is to be multiplied by: its unit, as UCUM or Prometheus writes it, or else the one that its name ends
// in, may be another multiple. ok is false where it is a unit of something else. What has none is in bytes, or a share.
func scaleOf(kind leak.Kind, m pmetric.Metric) (scale float64, ok bool) {
	want := "bytes"
	switch kind {
	case leak.Used, leak.Live, leak.Limit, leak.DeviceUsed, leak.Reserved, leak.Unattributed:
	case leak.Cache, leak.Remaining:
		want = "ratio"
	default:
		return 1, true // a number of things
	}
	unit := m.Unit()
	base, scale, known := openslo.BaseUnit(unit)
	if unit == "" {
		if base, scale, known = openslo.UnitOfSuffix(m.Name()); !known {
			return 1, true
		}
	}
	return scale, known && base == want
}

// maxStrange bounds the metrics whose unit is complained of.
const maxStrange = 100

// strange says once of a metric that nothing is known of its unit. The caller holds the mutex.
func (e *engine) strange(m pmetric.Metric) {
	if what := m.Name() + " " + m.Unit(); !e.oddities[what] && len(e.oddities) < maxStrange {
		e.oddities[strings.Clone(what)] = true
		e.set.Logger.Warn("a metric is in a unit that it cannot be in, and is not heard: memory is in By, KiBy, MiBy, GiBy, kBy, MBy or GBy, and a share in 1 or %",
			zap.String("metric", m.Name()), zap.String("unit", cmp.Or(m.Unit(), "that of its name")))
	}
}
