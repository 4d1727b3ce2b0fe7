// SPDX-License-Identifier: Apache-2.0

//go:build backends

package backends

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	metrics "github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// engine is scraped by two. Each of its steps is one look at the simulator's /metrics and at what the simulator lacks: native
// histograms, summaries, exemplars, names beyond ASCII, series that end, a restart. Both scrapers are shown the same samples,
// with times of their own, in the form that they ask for, again and again until the test goes on to the next step. After the last
// it is gone.
type engine struct {
	simulator string
	begin     time.Time
	steps     int

	mu    sync.Mutex
	step  int
	shown []*dto.MetricFamily // as of step
	types [2]map[string]bool  // the content types that each was sent
	err   error
}

const stepLength = 15 * time.Second

// startEngine begins with the simulator, which runs at such a speed that a step takes about as long as two scrapes.
func startEngine(t testing.TB, steps int) *engine {
	t.Helper()
	metricsOf, control := spawn.FreeEndpoint(t), spawn.FreeEndpoint(t)
	keep(t, filepath.Join(spawn.Root(t), "bin", "llmsim"), "-speed", "100", "-rate", "3", "-listen", metricsOf, "-control", control)
	e := &engine{
		simulator: "http://" + metricsOf + "/metrics", begin: time.Now().Truncate(time.Second).Add(-time.Duration(steps) * stepLength), steps: steps,
		types: [2]map[string]bool{{}, {}},
	}
	require.Eventually(t, func() bool {
		e.shown, e.err = e.look()
		return e.err == nil
	}, arrives, 50*time.Millisecond, "the simulator is not there")
	return e
}

// at is the time of a step.
func (e *engine) at(step int) time.Time { return e.begin.Add(time.Duration(step) * stepLength) }

func (e *engine) serve(t testing.TB, who int) (address string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.step == e.steps {
			http.Error(w, "gone", http.StatusServiceUnavailable)
			return
		}
		// Scrapers do not ask for names beyond ASCII in the form that has native histograms, but read them.
		format := expfmt.NegotiateAccept(r.Header, expfmt.DefaultAcceptedFormats()...).WithEscapingScheme(model.NoEscaping)
		e.types[who][string(format)] = true
		w.Header().Set("Content-Type", string(format))
		var text bytes.Buffer
		out := expfmt.NewEncoder(&text, format)
		for _, f := range e.shown {
			e.err = errors.Join(e.err, out.Encode(f))
		}
		_, _ = w.Write(text.Bytes()) // a scraper that has not waited for it comes again
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// next goes on to the next step; after the last the engine is gone.
func (e *engine) next() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.step++; e.step < e.steps {
		shown, err := e.look()
		e.shown, e.err = shown, errors.Join(e.err, err)
	}
	return e.err
}

// look is what there is to see at a step, by name, stamped with its time.
func (e *engine) look() ([]*dto.MetricFamily, error) {
	resp, err := http.Get(e.simulator)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		return nil, err
	}
	registry := metrics.NewRegistry()
	registry.MustRegister(e)
	own, err := registry.Gather()
	if err != nil {
		return nil, err
	}
	for _, f := range own {
		families[f.GetName()] = f
	}
	at := e.at(e.step).UnixMilli()
	out := make([]*dto.MetricFamily, 0, len(families))
	for _, name := range slices.Sorted(maps.Keys(families)) {
		for _, m := range families[name].Metric {
			m.TimestampMs = &at
		}
		out = append(out, families[name])
	}
	return out, nil
}

// Describe says nothing, so that nothing is checked.
func (*engine) Describe(chan<- *metrics.Desc) {}

// Collect is called with the lock held.
func (e *engine) Collect(out chan<- metrics.Metric) {
	n := e.step + 1
	if n > e.steps/2 {
		n -= e.steps / 2 // a restart
	}
	must := func(m metrics.Metric, err error) metrics.Metric {
		if err != nil {
			panic(err)
		}
		return m
	}
	exemplars := func(m metrics.Metric, values ...float64) metrics.Metric {
		var all []metrics.Exemplar
		for i, v := range values {
			all = append(all, metrics.Exemplar{Value: v, Timestamp: e.at(e.step).Add(-time.Second), Labels: metrics.Labels{
				"trace_id": fmt.Sprintf("%032x", 1000*e.step+i+1), "span_id": fmt.Sprintf("%016x", e.step+1), "tenant": "a",
			}})
		}
		return must(metrics.NewMetricWithExemplars(m, all...))
	}
	for i, name := range []string{"qwen", "llama"} {
		desc := func(metric string, labels ...string) *metrics.Desc {
			return metrics.NewDesc(metric, "What "+metric+" is.", labels, metrics.Labels{"model_name": name})
		}
		k := uint64(n * (i + 1))
		out <- exemplars(metrics.MustNewConstMetric(desc("restarted_total"), metrics.CounterValue, float64(10*k)), float64(k))
		out <- exemplars(metrics.MustNewConstHistogram(desc("wait_seconds"), 9*k, 3.3*float64(k), map[float64]uint64{0.1: k, 0.5: 5 * k, 1: 6 * k, 2.5: 8 * k}), 0.05, 2)
		out <- metrics.MustNewConstSummary(desc("gc_duration_seconds"), k, float64(k)/9, map[float64]float64{0: 0.001, 0.5: 0.01, 0.99: float64(k), 1: 100})
		out <- exemplars(must(metrics.NewConstNativeHistogram(desc("request_duration_seconds"), 7*k, 2.2*float64(k),
			map[int]int64{-3: int64(2 * k), -2: int64(k), 1: int64(k)}, map[int]int64{0: int64(k)}, 2*k, 3, metrics.DefNativeHistogramZeroThreshold, e.begin)), 0.9)
		out <- metrics.MustNewConstMetric(desc("llm.tokens/s", "größe"), metrics.GaugeValue, float64(k%7), "ß")
		out <- metrics.MustNewConstMetric(desc("plain"), metrics.CounterValue, float64(k))
		out <- metrics.MustNewConstMetric(desc("odd", "is"), metrics.GaugeValue, math.NaN(), "nan")
		out <- metrics.MustNewConstMetric(desc("odd", "is"), metrics.GaugeValue, math.Copysign(0, -1), "minus zero")
		out <- metrics.MustNewConstMetric(desc("odd", "is"), metrics.GaugeValue, math.Inf(-1), "infinite")
		out <- metrics.MustNewConstMetric(desc("unknown"), metrics.UntypedValue, float64(n))
		out <- metrics.MustNewConstMetric(desc("swing"), metrics.GaugeValue, math.Abs(math.Sin(float64(e.step)/5+float64(i))))
		if e.step < e.steps/4 {
			out <- metrics.MustNewConstMetric(desc("ended"), metrics.GaugeValue, float64(n))
		}
		if e.step%4 == 0 {
			out <- metrics.MustNewConstMetric(desc("seldom"), metrics.GaugeValue, float64(n))
		}
	}
}
