// SPDX-License-Identifier: Apache-2.0

package promrules

import (
	"slices"
	"strings"
	"testing"
	"time"

	native "github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/stretchr/testify/require"
)

// memory is a storage for Prometheus's engine. Prometheus's own would bring the SDK of every cloud along.
type memory struct {
	points map[string][]chunks.Sample
	labels map[string]labels.Labels
}

// loaded holds series in the notation of Prometheus's tests, a point a minute: name{label="value"} 0+10x60.
func loaded(t testing.TB, lines string) *memory {
	t.Helper()
	m := &memory{points: map[string][]chunks.Sample{}, labels: map[string]labels.Labels{}}
	for line := range strings.Lines(lines) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		l, values, err := parser.ParseSeriesDesc(strings.TrimSpace(line))
		require.NoError(t, err, line)
		for i, v := range values {
			if !v.Omitted {
				m.add(l, at(i), v.Value)
			}
		}
	}
	return m
}

func (m *memory) add(l labels.Labels, at time.Time, v float64) {
	key := l.String()
	m.labels[key] = l
	m.points[key] = append(m.points[key], point{at.UnixMilli(), v})
}

// Querier makes memory a storage.Queryable.
func (m *memory) Querier(int64, int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		set := &seriesSet{at: -1}
		for key, l := range m.labels {
			if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(l.Get(m.Name)) }) {
				set.all = append(set.all, storage.NewListSeries(l, m.points[key]))
			}
		}
		slices.SortFunc(set.all, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
		return set
	}}, nil
}

type seriesSet struct {
	all []storage.Series
	at  int
}

func (s *seriesSet) Next() bool                      { s.at++; return s.at < len(s.all) }
func (s *seriesSet) At() storage.Series              { return s.all[s.at] }
func (*seriesSet) Err() error                        { return nil }
func (*seriesSet) Warnings() annotations.Annotations { return nil }

// point is a float sample.
type point struct {
	at    int64
	value float64
}

func (p point) T() int64                 { return p.at }
func (point) ST() int64                  { return 0 }
func (p point) F() float64               { return p.value }
func (point) H() *native.Histogram       { return nil }
func (point) FH() *native.FloatHistogram { return nil }
func (point) Type() chunkenc.ValueType   { return chunkenc.ValFloat }
func (p point) Copy() chunks.Sample      { return p }
