// SPDX-License-Identifier: Apache-2.0

//go:build enginetest

package enginetest

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

// scraped is one answer of /metrics.
type scraped struct {
	text     []byte
	families map[string]*dto.MetricFamily
}

func parse(t *testing.T, text []byte) scraped {
	t.Helper()
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(bytes.NewReader(text))
	require.NoError(t, err)
	return scraped{text, families}
}

func scrape(t *testing.T) scraped {
	t.Helper()
	resp, err := http.Get(base(t) + "/metrics")
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return parse(t, body)
}

// scrapeAfter waits until n requests were counted and the gauges have come to
// rest: both follow the answers by a moment.
func scrapeAfter(t *testing.T, before scraped, n int) scraped {
	t.Helper()
	var s scraped
	require.Eventually(t, func() bool {
		s = scrape(t)
		return growth(before, s, "vllm:request_success_total") == float64(n) && value(s, "vllm:kv_cache_usage_perc") == 0
	}, 60*time.Second, 200*time.Millisecond)
	return s
}

// open posts JSON and leaves the answer's body to the caller.
func open(t *testing.T, path string, body any) *http.Response {
	t.Helper()
	data, err := json.Marshal(body)
	require.NoError(t, err)
	resp, err := http.Post(base(t)+path, "application/json", bytes.NewReader(data))
	require.NoError(t, err)
	return resp
}

func post(t *testing.T, path string, body any) {
	t.Helper()
	resp := open(t, path, body)
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	require.Equal(t, http.StatusOK, resp.StatusCode, string(answer))
}

// cache is what the engine says of its KV cache.
type cache struct{ blockSize, blocks int }

func cacheOf(t *testing.T, s scraped) cache {
	t.Helper()
	mf := s.families["vllm:cache_config_info"]
	require.NotNil(t, mf, "vllm:cache_config_info")
	read := func(name string) int {
		for _, l := range mf.GetMetric()[0].GetLabel() {
			if l.GetName() == name {
				n, err := strconv.Atoi(l.GetValue())
				require.NoError(t, err, name)
				return n
			}
		}
		t.Fatalf("vllm:cache_config_info has no %s", name)
		return 0
	}
	return cache{blockSize: read("block_size"), blocks: read("num_gpu_blocks") - 1} // less the null block
}

// value is the sum of a family's series; of a histogram, the sum of what it saw.
func value(s scraped, name string) (v float64) {
	for _, m := range s.families[name].GetMetric() {
		v += m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetHistogram().GetSampleSum()
	}
	return v
}

func growth(before, after scraped, name string) float64 {
	return value(after, name) - value(before, name)
}

func observations(before, after scraped, name string) uint64 {
	count := func(s scraped) (n uint64) {
		for _, m := range s.families[name].GetMetric() {
			n += m.GetHistogram().GetSampleCount()
		}
		return n
	}
	return count(after) - count(before)
}

// buckets are the cumulative counts by bound that were added between two scrapes.
func buckets(before, after scraped, name string) map[float64]uint64 {
	out := map[float64]uint64{}
	for _, m := range after.families[name].GetMetric() {
		for _, b := range m.GetHistogram().GetBucket() {
			out[b.GetUpperBound()] += b.GetCumulativeCount()
		}
	}
	for _, m := range before.families[name].GetMetric() {
		for _, b := range m.GetHistogram().GetBucket() {
			out[b.GetUpperBound()] -= b.GetCumulativeCount()
		}
	}
	return out
}

// received are the attribute names of the request spans that the engine sent.
type received struct {
	mu    sync.Mutex
	names [][]string
}

func (r *received) attributes() [][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.names)
}

// receiveSpans listens where the engine was told to send its spans.
func receiveSpans(t *testing.T) *received {
	t.Helper()
	address := os.Getenv("LLMSIM_ENGINE_OTLP")
	require.NotEmpty(t, address, "LLMSIM_ENGINE_OTLP names no address; cmd/llmsim/enginetest/run.sh sets it")
	l, err := net.Listen("tcp", address)
	require.NoError(t, err)
	r := &received{}
	srv := &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		export := ptraceotlp.NewExportRequest()
		if err := export.UnmarshalProto(body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, rs := range export.Traces().ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					if span.Name() == "llm_request" && span.Kind() == ptrace.SpanKindServer {
						var names []string
						for name := range span.Attributes().All() {
							names = append(names, name)
						}
						slices.Sort(names)
						r.names = append(r.names, names)
					}
				}
			}
		}
	})}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close() })
	return r
}
