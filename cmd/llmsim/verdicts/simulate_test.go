// SPDX-License-Identifier: Apache-2.0

package verdicts

import (
	"bytes"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/clock"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/engine"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/exposition"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/fleet"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/scenario"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/spans"
)

const interval = 15 * time.Second

// request is one that has ended, and where.
type request struct {
	engine.Record
	replica int
}

// simulation is a fleet that is scraped. Simulated time and the clock of the test's bubble are one.
type simulation struct {
	t        *testing.T
	fleet    *fleet.Fleet
	began    time.Time // simulated time zero: an interval after the bubble's, so that each first scrape finds zeros
	wall     clock.Clock
	requests []request
}

func newSimulation(t *testing.T, file string) *simulation {
	sc, err := scenario.Load(file, 1)
	require.NoError(t, err)
	source, _, err := sc.Source(1)
	require.NoError(t, err)
	s := &simulation{t: t, began: time.Now().Add(interval).Round(0).UTC()}
	s.wall = clock.Clock{Start: s.began, Speed: 1}
	s.fleet = fleet.New(sc, source, 1, func(rep *fleet.Replica, r engine.Record) {
		s.requests = append(s.requests, request{r, slices.Index(s.fleet.Replicas, rep)})
	})
	return s
}

// run scrapes all replicas every interval, each at its own moment as a Prometheus receiver does, and sends the spans of
// what has ended meanwhile, until the traffic has ended and for so long after it.
func (s *simulation) run(to *judge, after time.Duration) {
	step := interval / time.Duration(len(s.fleet.Replicas))
	sent := 0
	for left := after; left > 0; {
		for _, rep := range s.fleet.Replicas {
			s.fleet.AdvanceTo(time.Since(s.began))
			var text bytes.Buffer
			require.NoError(s.t, exposition.Write(&text, exposition.Identity{Model: "llmsim", Start: s.began}, rep.Engine.Stats()))
			require.NoError(s.t, to.scraped(scraped(s.t, text.Bytes(), rep.Labels[scenario.InstanceLabel], time.Now())))
			require.NoError(s.t, to.received(s.spans(s.requests[sent:])))
			sent = len(s.requests)
			time.Sleep(step)
		}
		if s.fleet.Done() {
			left -= interval
		}
	}
}

// spans are what the engines tell of requests over OTLP.
func (s *simulation) spans(of []request) ptrace.Traces {
	var batch []spans.Finished
	for _, r := range of {
		batch = append(batch, spans.Finished{Record: r.Record, Labels: s.fleet.Replicas[r.replica].Labels, Model: "llmsim"})
	}
	return spans.Build(batch, s.wall, 1)
}

// scrapedAt is when the first scrape of a replica sees what happened at a simulated time.
func (s *simulation) scrapedAt(replica int, at time.Duration) time.Time {
	offset := interval / time.Duration(len(s.fleet.Replicas)) * time.Duration(replica)
	n := (at - offset + interval - 1) / interval
	return s.began.Add(offset + max(n, 0)*interval)
}

// scraped makes of an exposition what the Prometheus receiver makes of it: cumulative, without a start time.
func scraped(t *testing.T, text []byte, instance string, at time.Time) pmetric.Metrics {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	require.NoError(t, err)
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "vllm")
	rm.Resource().Attributes().PutStr("service.instance.id", instance)
	metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
	for _, name := range slices.Sorted(maps.Keys(families)) {
		m := metrics.AppendEmpty()
		m.SetName(name)
		for _, each := range families[name].Metric {
			point(t, m, families[name].GetType(), each, pcommon.NewTimestampFromTime(at))
		}
	}
	return md
}

func point(t *testing.T, m pmetric.Metric, kind dto.MetricType, from *dto.Metric, at pcommon.Timestamp) {
	var attributes pcommon.Map
	switch kind {
	case dto.MetricType_COUNTER:
		if m.Type() == pmetric.MetricTypeEmpty {
			m.SetEmptySum().SetIsMonotonic(true)
			m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		}
		p := m.Sum().DataPoints().AppendEmpty()
		p.SetTimestamp(at)
		p.SetDoubleValue(from.GetCounter().GetValue())
		attributes = p.Attributes()
	case dto.MetricType_GAUGE:
		if m.Type() == pmetric.MetricTypeEmpty {
			m.SetEmptyGauge()
		}
		p := m.Gauge().DataPoints().AppendEmpty()
		p.SetTimestamp(at)
		p.SetDoubleValue(from.GetGauge().GetValue())
		attributes = p.Attributes()
	case dto.MetricType_HISTOGRAM:
		if m.Type() == pmetric.MetricTypeEmpty {
			m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		}
		p := m.Histogram().DataPoints().AppendEmpty()
		p.SetTimestamp(at)
		p.SetCount(from.GetHistogram().GetSampleCount())
		p.SetSum(from.GetHistogram().GetSampleSum())
		below := uint64(0)
		for _, b := range from.GetHistogram().GetBucket() {
			if !math.IsInf(b.GetUpperBound(), 1) {
				p.ExplicitBounds().Append(b.GetUpperBound())
			}
			p.BucketCounts().Append(b.GetCumulativeCount() - below)
			below = b.GetCumulativeCount()
		}
		attributes = p.Attributes()
	default:
		require.Fail(t, "vLLM has no such metric", "%s is a %s", m.Name(), kind)
	}
	for _, l := range from.GetLabel() {
		attributes.PutStr(l.GetName(), l.GetValue())
	}
}
