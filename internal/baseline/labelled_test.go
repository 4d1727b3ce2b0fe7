// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"encoding/csv"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
	"github.com/otelcol-llm/otelcol-llm/internal/twosample"
)

type measured struct {
	at    time.Time
	value float64
}

type labelled struct {
	from, to, what string
}

func series(t *testing.T) (values []measured) {
	f, err := os.Open("../../testdata/drift/ec2_request_latency_system_failure.csv")
	require.NoError(t, err)
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	for _, row := range rows[1:] {
		at, err := time.Parse(time.DateTime, row[0])
		require.NoError(t, err)
		value, err := strconv.ParseFloat(row[1], 64)
		require.NoError(t, err)
		values = append(values, measured{at, value})
	}
	return values
}

// anomalies are the labels.
var anomalies = []labelled{
	{"2014-03-14 03:31:00", "2014-03-14 14:41:00", "lower value"},
	{"2014-03-18 17:06:00", "2014-03-19 04:16:00", "spike"},
	{"2014-03-20 21:26:00", "2014-03-21 03:41:00", "end"},
}

// Scenario: nine days of a server's latency with three labelled anomalies (testdata/drift): one value that is lower, a spike
// of 25 minutes, and 45 minutes of chaos in which the data ends. There is one value in five minutes, so windows are hours, and
// their quantiles low. Guarantees: no false alarm in nine days from the baselines. Hits stand in testdata/labelled.txt, and are
// few: a lower latency is no harm, the end has too few values to say anything about a quantile, and of two windows in a row, which
// a state takes to change, no anomaly here fills the second.
//
// The comparison of a window with those before it, as after a change, needs 20 values and finds what a few of them say: with its
// defaults it alarms once in a hundred windows by chance, which is why a state takes two in a row there, too.
func TestALabelledSeriesFromProduction(t *testing.T) {
	values := series(t)
	var table strings.Builder
	fmt.Fprintf(&table, "worse than what was normal by 10 %%, at 0.1 %%; of three labelled anomalies\n\n")
	fmt.Fprintf(&table, "%-8s %-9s %-16s %8s %13s %7s %6s  %s\n", "window", "quantile", "windows in a row", "windows", "insufficient", "alarms", "false", "hit")
	for _, c := range []struct {
		window     time.Duration
		quantile   float64
		minSamples int
		enter      uint8
	}{{time.Hour, 0.75, 11, 1}, {3 * time.Hour, 0.9, 29, 1}, {5 * time.Hour, 0.95, 59, 1}, {3 * time.Hour, 0.9, 29, 2}} {
		o := hourly()
		o.Decay.Window, o.MinSamples = c.window, c.minSamples
		o.Drifting, o.Enter, o.Leave = 0.1, c.enter, 1
		// The objective is far away: what counts here is what was normal.
		got := through9Days(t, values, o, Promise{Quantile: c.quantile, Objective: 100})
		if len(got.hits) == 0 {
			got.hits = []string{"none"}
		}
		fmt.Fprintf(&table, "%-8s P%-8v %-16d %8d %13d %7d %6d  %s\n", c.window, 100*c.quantile, c.enter, got.windows, got.insufficient, got.alarms, got.wrong, strings.Join(got.hits, ", "))
		assert.Zero(t, got.wrong)
		if c.quantile >= 0.9 && c.enter == 1 {
			assert.Equal(t, []string{"spike"}, got.hits)
		} else {
			assert.Equal(t, []string{"none"}, got.hits)
		}
	}
	fmt.Fprintf(&table, "\na window against the 12 before it, as before and after a change: at 1 %%, for 20 values and more\n\n")
	fmt.Fprintf(&table, "%-8s %-16s %8s %13s %7s %6s  %s\n", "window", "windows in a row", "windows", "insufficient", "alarms", "false", "hit")
	for _, enter := range []int{1, 2} {
		const window = 2 * time.Hour // the shortest that has so many
		got := againstBefore(t, values, window, enter)
		if len(got.hits) == 0 {
			got.hits = []string{"none"}
		}
		fmt.Fprintf(&table, "%-8s %-16d %8d %13d %7d %6d  %s\n", window, enter, got.windows, got.insufficient, got.alarms, got.wrong, strings.Join(got.hits, ", "))
		assert.Equal(t, map[int][]string{1: {"spike", "end"}, 2: {"none"}}[enter], got.hits)
		assert.LessOrEqual(t, got.wrong, got.windows/50, "1 %% by chance, and as much again")
	}
	golden(t, "testdata/labelled.txt", table.String())
}

// againstBefore compares each window with the twelve before it, as after a change.
func againstBefore(t *testing.T, values []measured, length time.Duration, enter int) (s score) {
	o := twosample.DefaultOptions()
	o.MinSamples = 20
	var before []sketch.Distribution
	row := 0
	windows(values, length, func(end time.Time, w *sketch.Distribution) {
		s.windows++
		var reference sketch.Distribution
		for i := range before {
			reference.Merge(&before[i])
		}
		bins := twosample.Distributions(nil, &reference, w)
		results := []twosample.Result{twosample.Compare(bins, twosample.Promise{Objective: 100}, o)}
		twosample.Decide(results, o)
		switch results[0].Verdict {
		case twosample.InsufficientData:
			s.insufficient++
		case twosample.Degraded:
			row++
		default:
			row = 0
		}
		if row >= enter {
			s.alarm(end.Add(-length), end)
		}
		var own sketch.Distribution
		require.True(t, own.Merge(w))
		if before = append(before, own); len(before) > 12 {
			before = before[1:]
		}
	})
	return s
}

type score struct {
	windows, insufficient, alarms, wrong int
	hits                                 []string
}

// alarm notes an alarm. A window that overlaps a label is right to alarm, any other wrong.
func (s *score) alarm(from, to time.Time) {
	s.alarms++
	inside := false
	for _, l := range anomalies {
		if from.Format(time.DateTime) > l.to || to.Format(time.DateTime) <= l.from {
			continue
		}
		inside = true
		if !slices.Contains(s.hits, l.what) {
			s.hits = append(s.hits, l.what)
		}
	}
	if !inside {
		s.wrong++
	}
}

// through9Days closes the windows of the series.
func through9Days(t *testing.T, values []measured, o Options, p Promise) (s score) {
	j, err := NewJudge(o, p)
	require.NoError(t, err)
	var cell Cell
	windows(values, o.Decay.Window, func(end time.Time, w *sketch.Distribution) {
		r := j.Close(&cell, end.UnixNano(), w)
		s.windows++
		if r.State == InsufficientData {
			s.insufficient++
		}
		if r.State >= Drifting {
			s.alarm(end.Add(-o.Decay.Window), end)
		}
	})
	return s
}

// windows calls f for each window of the series.
func windows(values []measured, length time.Duration, f func(end time.Time, w *sketch.Distribution)) {
	var w sketch.Distribution
	end := values[0].at.Truncate(length).Add(length)
	for _, v := range values {
		for !v.at.Before(end) {
			f(end, &w)
			w.Reset()
			end = end.Add(length)
		}
		w.Observe(v.value, 1)
	}
	f(end, &w)
}
