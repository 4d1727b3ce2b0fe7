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

// Scenario: nine days of a server's latency with three labelled anomalies (testdata/drift): one value that is lower, a spike
// of 25 minutes, and 45 minutes of chaos in which the data ends. There is one value in five minutes, so windows are hours, and
// their quantiles low. Guarantees: no false alarm in nine days. Hits stand in testdata/labelled.txt, and are few: a lower
// latency is no harm, the end has too few values to say anything about a quantile, and of two windows in a row, which a
// state takes to change, no anomaly here fills the second.
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
		o := DefaultOptions()
		o.Decay.Window, o.MinSamples = c.window, c.minSamples
		o.Drifting, o.Enter, o.Leave = 0.1, c.enter, 1
		labels := []labelled{
			{"2014-03-14 03:31:00", "2014-03-14 14:41:00", "lower value"},
			{"2014-03-18 17:06:00", "2014-03-19 04:16:00", "spike"},
			{"2014-03-20 21:26:00", "2014-03-21 03:41:00", "end"},
		}
		// The objective is far away: what counts here is what was normal.
		got := through9Days(t, values, o, Promise{Quantile: c.quantile, Objective: 100}, labels)
		if len(got.hits) == 0 {
			got.hits = []string{"none"}
		}
		fmt.Fprintf(&table, "%-8s P%-8v %-16d %8d %13d %7d %6d  %s\n", c.window, 100*c.quantile, c.enter, got.windows, got.insufficient, got.alarms, got.wrong, strings.Join(got.hits, ", "))
		assert.Zero(t, got.wrong)
	}
	golden(t, "testdata/labelled.txt", table.String())
}

type score struct {
	windows, insufficient, alarms, wrong int
	hits                                 []string
}

// through9Days closes the windows of the series. A window that overlaps a label is right to alarm, any other wrong.
func through9Days(t *testing.T, values []measured, o Options, p Promise, labels []labelled) (s score) {
	j, err := NewJudge(o, p)
	require.NoError(t, err)
	var cell Cell
	var w sketch.Distribution
	closeAt := func(end time.Time) {
		r := j.Close(&cell, end.UnixNano(), &w)
		w.Reset()
		s.windows++
		if r.State == InsufficientData {
			s.insufficient++
		}
		if r.State < Drifting {
			return
		}
		s.alarms++
		from, to := end.Add(-o.Decay.Window).Format(time.DateTime), end.Format(time.DateTime)
		inside := false
		for _, l := range labels {
			if from > l.to || to <= l.from {
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
	end := values[0].at.Truncate(o.Decay.Window).Add(o.Decay.Window)
	for _, v := range values {
		for !v.at.Before(end) {
			closeAt(end)
			end = end.Add(o.Decay.Window)
		}
		require.True(t, w.Observe(v.value, 1))
	}
	closeAt(end)
	return s
}
