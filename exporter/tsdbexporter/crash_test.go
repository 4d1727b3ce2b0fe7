// SPDX-License-Identifier: Apache-2.0

package tsdbexporter

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter/exportertest"

	"github.com/otelcol-llm/otelcol-llm/exporter/tsdbexporter/internal/metadata"
)

// writerDirectory is the variable that makes this binary a writer, to be killed, instead of a test.
const writerDirectory = "TSDB_TEST_WRITER_DIRECTORY"

const (
	writerSeries = 200
	writerStep   = 100 * time.Millisecond // of the time in the samples
)

// writeUntilKilled appends to a database for ever and tells of each batch once it was taken.
func writeUntilKilled(dir string) {
	cfg := defaults()
	cfg.HTTP.NetAddr.Endpoint = "127.0.0.1:0"
	cfg.Directory = dir
	e, err := NewFactory().CreateMetrics(context.Background(), exportertest.NewNopSettings(metadata.Type), cfg)
	if err == nil {
		err = e.Start(context.Background(), componenttest.NewNopHost())
	}
	begin := time.Now().Add(-4 * time.Hour).Truncate(time.Second)
	for n := 0; err == nil; n++ {
		md, ms := batch(resource)
		for series := range writerSeries {
			addGauge(ms, "crash_value", float64(n), begin.Add(time.Duration(n)*writerStep), map[string]any{"series": series})
		}
		if err = e.ConsumeMetrics(context.Background(), md); err == nil {
			_, err = fmt.Println(n, begin.UnixMilli())
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// Scenario: the process is killed while it appends, three times, at no particular moment.
// Guarantees: each time the database opens again and has every batch that was taken, whole and in order.
func TestAKillLosesNothingThatWasTaken(t *testing.T) {
	for round := range 3 {
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), writerDirectory+"="+dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		enough := 100 + round*37
		taken, begin := -1, int64(0)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if _, err := fmt.Sscan(lines.Text(), &taken, &begin); err != nil {
				break // cut in mid-line
			}
			if taken == enough {
				time.AfterFunc(time.Duration(1+7*round)*time.Millisecond, func() { _ = cmd.Process.Kill() }) // in the midst of one that follows
			}
		}
		assert.ErrorContains(t, cmd.Wait(), "killed")
		require.GreaterOrEqual(t, taken, enough)

		r := newRig(t, settings(t, func(c *Config) { c.Directory = dir }))
		end := time.UnixMilli(begin).Add(time.Duration(taken) * writerStep)
		value, _, err := r.Query(t.Context(), fmt.Sprintf("crash_value[%ds]", taken/10+2), end)
		require.NoError(t, err)
		require.Len(t, value, writerSeries)
		for _, series := range value.(model.Matrix) {
			require.Len(t, series.Values, taken+1, series.Metric)
			for n, v := range series.Values {
				require.Equal(t, model.SampleValue(n), v.Value)
			}
		}
		var lines []string
		for _, entry := range r.logs.All() {
			lines = append(lines, entry.Message)
		}
		t.Logf("killed after %d batches of %d samples; opened again: %s", taken, writerSeries, strings.Join(lines, "; "))
		r.push(gauge("afterwards", 1, now(), nil))
		r.stop()
	}
}
