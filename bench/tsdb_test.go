// SPDX-License-Identifier: Apache-2.0

//go:build backends

package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
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

// waitTaking waits until it listens where it takes data, too.
func (k *keeper) waitTaking(b *testing.B) {
	u, err := url.Parse(k.push)
	require.NoError(b, err)
	require.Eventually(b, func() bool {
		c, err := net.Dial("tcp", u.Host)
		if err == nil {
			c.Close()
		}
		return err == nil
	}, time.Minute, 5*time.Millisecond)
}

// asked are the questions whose latency is measured, as a dashboard asks them.
var asked = map[string]string{
	"quantile": `histogram_quantile(0.95, sum by (le) (rate(vllm:time_to_first_token_seconds_bucket[5m])))`,
	"rate":     `sum by (pod) (rate(vllm:time_to_first_token_seconds_count[5m]))`,
	"raw":      `vllm:time_to_first_token_seconds_bucket{pod="chat-3"}`,
}

// BenchmarkTSDB sends half an hour of histograms, 1.2 million samples, as fast as they are taken: 4 pods of 25 series each, 400 or
// 4,000; asks for that half hour, with a step of 15 s; lets a block be written of it; and starts anew. The half hour was four hours ago,
// so that one batch of now is enough for the block. Run it as:
// go test -tags backends -run '^$' -bench TSDB -benchtime 1x -count 3 ./bench
func BenchmarkTSDB(b *testing.B) {
	const samples, perPod, span = 1_200_000, 25, 30 * time.Minute
	for _, pods := range []int{4, 400, 4000} {
		for _, name := range []string{"prometheus", "tsdb"} {
			b.Run(fmt.Sprintf("%s/%d_series", name, pods*perPod), func(b *testing.B) {
				rounds := samples / perPod / pods
				for b.Loop() {
					directory := b.TempDir()
					k := keepers[name](b, directory)
					k.waitReady(b)
					time.Sleep(5 * time.Second)
					idle := residentMiB(b, k.pid)
					b.ReportMetric(idle, "idle-MiB")

					end := time.Now().Truncate(time.Second).Add(-4 * time.Hour)
					var bodies [][]byte
					for n := range rounds {
						for first := 0; first < pods; first += 400 {
							bodies = append(bodies, request(b, first, min(pods, 400), n+1, end.Add(time.Duration(n+1-rounds)*span/time.Duration(rounds))))
						}
					}
					cpu, began := cpuTime(b, k.pid), time.Now()
					for _, body := range bodies {
						post(b, k.push, body)
					}
					b.ReportMetric(samples/time.Since(began).Seconds(), "samples/s")
					b.ReportMetric(float64((cpuTime(b, k.pid)-cpu).Nanoseconds())/samples, "cpu-ns/sample")
					b.ReportMetric(residentMiB(b, k.pid)-idle, "added-MiB")
					b.ReportMetric(bytesIn(b, filepath.Join(directory, "wal"))/samples, "log-B/sample")
					for what, query := range asked {
						b.ReportMetric(latency(b, k, query, end.Add(-span), end), what+"-ms")
					}
					k.stop()

					began = time.Now()
					k = keepers[name](b, directory)
					k.waitReady(b)
					b.ReportMetric(float64(time.Since(began).Milliseconds()), "restart-ms")

					k.waitTaking(b)
					post(b, k.push, request(b, 0, 1, rounds+1, time.Now()))
					var written float64
					require.Eventually(b, func() bool { written = samplesInBlocks(b, directory); return written >= samples*0.95 }, time.Minute, 100*time.Millisecond)
					blocks, err := filepath.Glob(filepath.Join(directory, "01*"))
					require.NoError(b, err)
					var size float64
					for _, block := range blocks {
						size += bytesIn(b, block)
					}
					b.ReportMetric(size/written, "block-B/sample")
					k.stop()
				}
			})
		}
	}
}

// latency is the median of the times that a question takes, in milliseconds.
func latency(b *testing.B, k *keeper, query string, from, to time.Time) float64 {
	form := url.Values{"query": {query}, "start": {fmt.Sprint(from.Unix())}, "end": {fmt.Sprint(to.Unix())}, "step": {"15"}}
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
	return float64(took[len(took)/2].Microseconds()) / 1000
}

// bytesIn is the size of all files in a directory.
func bytesIn(b *testing.B, directory string) (size float64) {
	require.NoError(b, filepath.WalkDir(directory, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				size += float64(info.Size())
			}
		}
		return nil // what is not there any more is not counted
	}))
	return size
}

// samplesInBlocks is how many samples are in blocks that are complete.
func samplesInBlocks(b *testing.B, directory string) (n float64) {
	metas, err := filepath.Glob(filepath.Join(directory, "01*", "meta.json"))
	require.NoError(b, err)
	for _, path := range metas {
		if strings.Contains(path, ".tmp") {
			continue
		}
		var meta struct{ Stats struct{ NumSamples float64 } }
		if text, err := os.ReadFile(path); err == nil && json.Unmarshal(text, &meta) == nil {
			n += meta.Stats.NumSamples
		}
	}
	return n
}
