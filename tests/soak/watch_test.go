// SPDX-License-Identifier: Apache-2.0

//go:build soak

package soak

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is watched besides the sizes.
const (
	resident = "otelcol_process_memory_rss_bytes"
	heap     = "otelcol_process_runtime_heap_alloc_bytes"
	anon     = "RssAnon" // of /proc: what is not a file that is mapped
	cpu      = "otelcol_process_cpu_seconds_total"
)

// sample is what the Collector says of itself at a time, all points of a metric added up.
type sample struct {
	at     time.Time
	values map[string]float64
}

// look asks it.
func (d *demo) look(t testing.TB) sample {
	t.Helper()
	text, err := get(d.telemetry)
	require.NoError(t, err, "the Collector has ended")
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	require.NoError(t, err)
	s := sample{time.Now(), map[string]float64{}}
	for name, family := range families {
		for _, m := range family.Metric {
			s.values[name] += m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue()
		}
	}
	status, err := os.ReadFile("/proc/" + d.collector + "/status")
	require.NoError(t, err)
	kB, err := strconv.ParseFloat(strings.TrimSuffix(fields(string(status))[anon], " kB"), 64)
	require.NoError(t, err)
	s.values[anon] = kB * 1024
	return s
}

func get(url string) (string, error) {
	resp, err := http.Get(url)
	if err != nil {
		return "", err
	}
	text, err := read(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, resp.Status)
	}
	return text, err
}

// watch is what was seen.
type watch struct {
	commit  string // that was checked out when the demo was started
	began   time.Time
	samples []sample
}

func (w *watch) add(s sample) { w.samples = append(w.samples, s) }

// series are the values of a metric.
func (w *watch) series(name string) (values []float64) {
	for _, s := range w.samples {
		values = append(values, s.values[name])
	}
	return values
}

// growth is how much a metric grows in a minute, robustly: see theilSen.
func (w *watch) growth(name string) float64 {
	var minutes []float64
	for _, s := range w.samples {
		minutes = append(minutes, s.at.Sub(w.began).Minutes())
	}
	return theilSen(minutes, w.series(name))
}

// ends are the greatest values in the first and in the last tenth.
func (w *watch) ends(name string) (first, last float64, there bool) {
	values := w.series(name)
	tenth := max(len(values)/10, 1)
	_, there = w.samples[len(w.samples)-1].values[name]
	return slices.Max(values[:tenth]), slices.Max(values[len(values)-tenth:]), there
}

// theilSen is the median of the slopes between all pairs of points: up to 29 % of them may be anything, such as the teeth of a
// garbage collector (Sen 1968, https://doi.org/10.1080/01621459.1968.10480934).
func theilSen(x, y []float64) float64 {
	var slopes []float64
	for i := range x {
		for j := range i {
			if dx := x[i] - x[j]; dx != 0 {
				slopes = append(slopes, (y[i]-y[j])/dx)
			}
		}
	}
	return median(slopes)
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	values = slices.Sorted(slices.Values(values))
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

func itoa(n int) string { return strconv.Itoa(n) }

func TestTheSlopeIsThatOfMostPoints(t *testing.T) {
	var x, y []float64
	for i := range 100 {
		x, y = append(x, float64(i)), append(y, 7+3*float64(i))
	}
	assert.InDelta(t, 3, theilSen(x, y), 1e-12)
	for i := 3; i < 100; i += 5 {
		y[i] = 1e9
	}
	assert.InDelta(t, 3, theilSen(x, y), 0.2)
	assert.Zero(t, theilSen(nil, nil))
}
