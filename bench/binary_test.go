// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// config is a pipeline from OTLP to nowhere; the peer has no slo connector in it.
const config = `
extensions:
  slo_catalog: {paths: ["builtin:vllm"]}
receivers:
  otlp: {protocols: {http: {endpoint: %q}}}
connectors:
  slo: {max_input_series: 200000}
exporters:
  nop:
service:
  extensions: [%s]
  pipelines:
    metrics: {receivers: [otlp], exporters: [%s]}
%s
  telemetry: {metrics: {level: none}}
`

func start(b *testing.B, slo bool) (c *spawn.Collector, url string) {
	endpoint := spawn.FreeEndpoint(b)
	text := fmt.Sprintf(config, endpoint, "", "nop", "")
	text = strings.Replace(text, "connectors:\n  slo: {max_input_series: 200000}\n", "", 1)
	if slo {
		text = fmt.Sprintf(config, endpoint, "slo_catalog", "nop, slo", "    metrics/slo: {receivers: [slo], exporters: [nop]}")
	}
	c = spawn.Start(b, spawn.Options{Configs: []string{spawn.WriteConfig(b, text)}})
	c.WaitReady()
	return c, "http://" + endpoint + "/v1/metrics"
}

// request is an OTLP request of cumulative TTFT histograms, one for each of the series from first on.
func request(b *testing.B, first, series, round int, at time.Time) []byte {
	bounds := []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "vllm")
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("vllm:time_to_first_token_seconds")
	m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	for i := first; i < first+series; i++ {
		p := m.Histogram().DataPoints().AppendEmpty()
		p.Attributes().PutStr("model_name", "qwen2-72b")
		p.Attributes().PutStr("engine", "0")
		p.Attributes().PutStr("cloud.region", "eu-central-1")
		p.Attributes().PutStr("device.type", "h100")
		p.Attributes().PutStr("model.version", "v1")
		p.Attributes().PutStr("pod", "chat-"+strconv.Itoa(i))
		p.SetTimestamp(pcommon.NewTimestampFromTime(at))
		p.ExplicitBounds().FromRaw(bounds)
		counts := make([]uint64, len(bounds)+1)
		counts[9] = uint64(95 * round)
		counts[12] = uint64(5 * round)
		p.BucketCounts().FromRaw(counts)
		p.SetCount(uint64(100 * round))
	}
	body, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
	require.NoError(b, err)
	return body
}

func post(b *testing.B, url string, body []byte) {
	resp, err := http.Post(url, "application/x-protobuf", bytes.NewReader(body))
	require.NoError(b, err)
	require.NoError(b, resp.Body.Close())
	require.Equal(b, http.StatusOK, resp.StatusCode)
}

// maxRequest is how many points an OTLP client sends at once.
const maxRequest = 2000

// BenchmarkPoint is the CPU time that the whole binary spends on a point which comes in over OTLP/HTTP, without and
// with the slo connector beside the exporter.
func BenchmarkPoint(b *testing.B) {
	for _, series := range []int{10, 1_000, 100_000} {
		for _, variant := range []struct {
			name string
			slo  bool
		}{{"plain_pipeline", false}, {"with_slo", true}} {
			b.Run(fmt.Sprintf("%s/%d_series", variant.name, series), func(b *testing.B) {
				c, url := start(b, variant.slo)
				// At least 200,000 points, so that the ticks of the kernel's accounting do not matter.
				rounds := max(200_000/series, 5)
				var cpu time.Duration
				points := 0
				for b.Loop() {
					at := time.Now().Add(-time.Duration(rounds) * time.Second)
					before := cpuTime(b, c.PID())
					for round := range rounds {
						for first := 0; first < series; first += maxRequest {
							n := min(maxRequest, series-first)
							body := request(b, first, n, round+1, at.Add(time.Duration(round)*time.Second))
							post(b, url, body)
							points += n
						}
					}
					cpu += cpuTime(b, c.PID()) - before
				}
				b.ReportMetric(float64(cpu.Nanoseconds())/float64(points), "cpu-ns/point")
				c.Stop()
			})
		}
	}
}

// BenchmarkStart is the time from starting the binary until everything is ready, and what it keeps in memory after ten
// idle seconds.
func BenchmarkStart(b *testing.B) {
	for name, configs := range map[string]func() []string{
		"plain_pipeline": func() []string {
			return []string{spawn.WriteConfig(b, strings.Replace(fmt.Sprintf(config, spawn.FreeEndpoint(b), "", "nop", ""), "connectors:\n  slo: {max_input_series: 200000}\n", "", 1))}
		},
		"all-in-one": func() []string {
			return []string{"builtin:all-in-one"}
		},
	} {
		b.Run(name, func(b *testing.B) {
			var ready time.Duration
			var idle float64
			runs := 0
			for b.Loop() {
				begin := time.Now()
				c := spawn.Start(b, spawn.Options{Configs: configs()})
				c.WaitReady()
				ready += time.Since(begin)
				if runs == 0 {
					time.Sleep(10 * time.Second)
					idle = residentMiB(b, c.PID())
				}
				runs++
				c.Stop()
			}
			b.ReportMetric(float64(ready.Milliseconds())/float64(runs), "ms-to-ready")
			b.ReportMetric(idle, "idle-MiB")
		})
	}
	info, err := os.Stat(spawn.Binary(b))
	require.NoError(b, err)
	b.Logf("%s: %.0f MB", filepath.Base(spawn.Binary(b)), float64(info.Size())/1e6)
}

// cpuTime is the user and system time of a process so far, from /proc (proc(5), fields 14 and 15, in ticks of 10 ms).
func cpuTime(b testing.TB, pid int) time.Duration {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(b, err)
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		require.NoError(b, err)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

func residentMiB(b *testing.B, pid int) float64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(b, err)
	for line := range strings.Lines(string(data)) {
		if v, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseFloat(strings.Fields(v)[0], 64)
			require.NoError(b, err)
			return kib / 1024
		}
	}
	b.Fatal("no VmRSS")
	return 0
}
