// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
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

var (
	capturedPart = regexp.MustCompile(`(?s)\n    MIG Device\n\s+Index +: (\d+)\n\s+GPU Instance ID +: (\d+)\n\s+Compute Instance ID +: (\d+).*?` +
		`Shared FB Memory Usage\n\s+Total +: (\d+) MiB\n\s+Reserved +: (\d+) MiB\n\s+Used +: (\d+) MiB`)
	capturedProcess = regexp.MustCompile(`(?s)GPU instance ID +: (\d+)\n\s+Compute instance ID +: (\d+)\n\s+Process ID +: (\d+)\n.*?Used GPU Memory +: (\d+) MiB`)
)

// Guarantees: the golden of the divided GPU has of each instance what nvidia-smi said of it: which it is, its memory, and the memory of
// each process, on the instance that the process is on and on no other; and nobody is held responsible for the rest.
func TestTheGoldenOfTheInstancesIsTheCapture(t *testing.T) {
	told, err := os.ReadFile("testdata/h100-mig.txt")
	require.NoError(t, err)
	content, err := os.ReadFile("../../testdata/gpu/nvidia-smi_h100-mig_load.txt")
	require.NoError(t, err)
	captured := string(content)
	parts := strings.Split(string(told), "\n\n")[1:] // behind the GPU
	found := capturedPart.FindAllStringSubmatch(captured, -1)
	require.Len(t, parts, len(found))
	require.Len(t, found, strings.Count(captured, "\n    MIG Device\n"))
	processes := capturedProcess.FindAllStringSubmatch(captured, -1)
	require.Len(t, processes, strings.Count(captured, "Process ID "))
	for i, m := range found {
		bytes := func(s string) int {
			mebibytes, err := strconv.Atoi(s)
			require.NoError(t, err)
			return mebibytes << 20
		}
		id, _, _ := strings.Cut(parts[i][strings.Index(parts[i], "hw.id=")+len("hw.id="):], ",")
		assert.Contains(t, parts[i], "hw.name=GPU 0 MIG "+m[1]+",")
		one := func(series string, value int) {
			t.Helper()
			assert.Equal(t, 1, strings.Count(parts[i], fmt.Sprintf("\n  %s} %d ", series, value)), "%s %d\n%s", series, value, parts[i])
		}
		total, reserved, used := bytes(m[4]), bytes(m[5]), bytes(m[6])
		one("hw.gpu.memory.limit{hw.id="+id, total)
		one("nvidia.gpu.memory.reserved{hw.id="+id, reserved)
		one("hw.gpu.memory.usage{hw.id="+id, used)
		held, on := 0, 0
		for _, p := range processes {
			if p[1] == m[2] && p[2] == m[3] {
				one("nvidia.gpu.process.memory.usage{hw.id="+id+",process.pid="+p[3], bytes(p[4]))
				held += bytes(p[4])
				on++
			}
		}
		assert.Equal(t, on, strings.Count(parts[i], "process.pid="))
		one("nvidia.gpu.memory.unattributed{hw.id="+id, used-held)
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
