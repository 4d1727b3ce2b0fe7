// SPDX-License-Identifier: Apache-2.0

//go:build backends

package bench

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// keeper is a server that takes OTLP and answers PromQL, alone on the machine.
type keeper struct {
	pid       int
	push, ask string
	stop      func()
}

// keepers are the tsdb exporter in the shipped binary, and the Prometheus server that `make test-backends` builds.
var keepers = map[string]func(b *testing.B, directory string) *keeper{
	"tsdb": func(b *testing.B, directory string) *keeper {
		push, ask := spawn.FreeEndpoint(b), spawn.FreeEndpoint(b)
		c := spawn.Start(b, spawn.Options{Configs: []string{spawn.WriteConfig(b, fmt.Sprintf(`
receivers:
  otlp: {protocols: {http: {endpoint: %q}}}
exporters:
  tsdb: {endpoint: %q, directory: %q, min_free_bytes: 0, max_exemplars: 100000, promote_resource_attributes: [tenant]}
service:
  pipelines:
    metrics: {receivers: [otlp], exporters: [tsdb]}
  telemetry: {metrics: {level: none}}
`, push, ask, directory))}})
		return &keeper{c.PID(), "http://" + push + "/v1/metrics", "http://" + ask, func() { c.Stop() }}
	},
	"prometheus": func(b *testing.B, directory string) *keeper {
		address := spawn.FreeEndpoint(b)
		root := spawn.Root(b)
		versions, err := os.ReadFile(filepath.Join(root, "tools", "versions.env"))
		require.NoError(b, err)
		version := regexp.MustCompile(`(?m)^PROMETHEUS_VERSION=(\S+)$`).FindSubmatch(versions)
		config := spawn.WriteConfig(b, "storage: {tsdb: {out_of_order_time_window: 1h}}\notlp: {promote_resource_attributes: [tenant]}\n")
		cmd := exec.Command(filepath.Join(root, ".tools", "prometheus-"+string(version[1])), "--config.file="+config, "--web.listen-address="+address,
			"--storage.tsdb.path="+directory, "--web.enable-otlp-receiver", "--enable-feature=exemplar-storage,otlp-deltatocumulative")
		require.NoError(b, cmd.Start(), "`make test-backends` builds it")
		return &keeper{cmd.Process.Pid, "http://" + address + "/api/v1/otlp/v1/metrics", "http://" + address, func() {
			_ = cmd.Process.Signal(syscall.SIGTERM) // fails only when it has already ended
			_ = cmd.Wait()
		}}
	},
}

func (k *keeper) waitReady(b *testing.B) {
	require.Eventually(b, func() bool {
		resp, err := http.Get(k.ask + "/-/ready")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, time.Minute, 5*time.Millisecond)
}

// asked are the questions whose latency is measured, as a dashboard asks them.
var asked = map[string]string{
	"quantile": `histogram_quantile(0.95, sum by (le) (rate(vllm:time_to_first_token_seconds_bucket[5m])))`,
	"rate":     `sum by (pod) (rate(vllm:time_to_first_token_seconds_count[5m]))`,
	"raw":      `vllm:time_to_first_token_seconds_bucket{pod="chat-7"}`,
}

// BenchmarkTSDB sends 400 histograms, which are 10,000 series, 120 times as fast as they are taken, and then asks for the half
// hour that they cover, with a step of 15 s. Run it as: go test -tags backends -run '^$' -bench TSDB -benchtime 1x -count 5 ./bench
func BenchmarkTSDB(b *testing.B) {
	const pods, rounds, step = 400, 120, 15 * time.Second
	for _, name := range []string{"prometheus", "tsdb"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				directory := b.TempDir()
				k := keepers[name](b, directory)
				k.waitReady(b)
				time.Sleep(5 * time.Second)
				b.ReportMetric(residentMiB(b, k.pid), "idle-MiB")

				end := time.Now().Truncate(time.Second)
				var bodies [][]byte
				for n := range rounds {
					bodies = append(bodies, request(b, 0, pods, n+1, end.Add(time.Duration(n-rounds+1)*step)))
				}
				cpu, began := cpuTime(b, k.pid), time.Now()
				for _, body := range bodies {
					post(b, k.push, body)
				}
				samples := float64(pods * rounds * 25) // 23 buckets, sum or not, and count
				b.ReportMetric(samples/time.Since(began).Seconds(), "samples/s")
				b.ReportMetric(float64((cpuTime(b, k.pid)-cpu).Nanoseconds())/samples, "cpu-ns/sample")
				b.ReportMetric(residentMiB(b, k.pid), "filled-MiB")

				for what, query := range asked {
					form := url.Values{"query": {query}, "start": {fmt.Sprint(end.Add(-30 * time.Minute).Unix())}, "end": {fmt.Sprint(end.Unix())}, "step": {"15"}}
					var took []time.Duration
					for range 20 {
						began := time.Now()
						resp, err := http.Post(k.ask+"/api/v1/query_range", "application/x-www-form-urlencoded", strings.NewReader(form.Encode()))
						require.NoError(b, err)
						body, err := io.ReadAll(resp.Body)
						require.NoError(b, err)
						resp.Body.Close()
						took = append(took, time.Since(began))
						require.True(b, bytes.Contains(body, []byte(`"values":[[`)), "%s", body)
					}
					slices.Sort(took)
					b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, what+"-ms")
				}
				k.stop()

				began = time.Now()
				k = keepers[name](b, directory)
				k.waitReady(b)
				b.ReportMetric(float64(time.Since(began).Milliseconds()), "restart-ms")
				k.stop()
			}
		})
	}
}
