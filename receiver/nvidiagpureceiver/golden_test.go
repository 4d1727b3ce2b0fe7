// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu"
)

// settled is how long it takes until NVML has two samples of what it profiles, and has measured PCIe, on a machine that is not busy.
const settled = 150 * time.Millisecond

// Guarantees: what three real machines had when they were captured (nvidia-smi's values stand in the fakes) comes out, series by
// series: an H100, one that is divided, and an L40S.
//
// To write them anew: UPDATE=1 go test ./receiver/nvidiagpureceiver -run RealMachines
func TestSeriesOfRealMachines(t *testing.T) {
	for name, world := range map[string]*fakegpu.Scenario{"h100": fakegpu.H100(), "h100-mig": fakegpu.H100MIG(), "l40s": fakegpu.L40S()} {
		t.Run(name, func(t *testing.T) {
			r := onFakes(t, world, nil)
			r.scrape()
			got, file := "", "testdata/"+name+".txt"
			again := func() {
				r.scrape()
				got = described(r.metrics.AllMetrics())
			}
			if os.Getenv("UPDATE") != "" {
				time.Sleep(settled)
				again()
				require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Eventually(t, func() bool { again(); return got == string(want) }, time.Minute, settled)
			assert.Equal(t, string(want), got)
		})
	}
}

// described writes batches as text: each resource, each metric with its unit and kind, and its points.
func described(all []pmetric.Metrics) string {
	var b strings.Builder
	for _, md := range all {
		for _, rm := range md.ResourceMetrics().All() {
			var of []string
			for k, v := range rm.Resource().Attributes().All() {
				of = append(of, k+"="+v.AsString())
			}
			slices.Sort(of)
			fmt.Fprintf(&b, "\n%s\n", strings.Join(of, ", "))
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				kind, points := "gauge", pmetric.NumberDataPointSlice{}
				if m.Type() == pmetric.MetricTypeSum {
					kind, points = "sum", m.Sum().DataPoints()
					if m.Sum().IsMonotonic() {
						kind = "counter"
					}
				} else {
					points = m.Gauge().DataPoints()
				}
				for _, p := range points.All() {
					fmt.Fprintf(&b, "  %s %s (%s)\n", text(m.Name(), p), m.Unit(), kind)
				}
			}
		}
	}
	return b.String()
}
