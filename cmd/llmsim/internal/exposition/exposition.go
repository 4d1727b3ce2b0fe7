// SPDX-License-Identifier: Apache-2.0

// Package exposition writes an engine's counters as vLLM 0.30 exposes them on
// /metrics: the same families, types, labels, label values and bucket bounds.
// Help sentences are our own.
package exposition

import (
	"io"
	"math"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/proto"

	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/engine"
)

// ContentType is what Write writes.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Identity is what the engine is called in its metrics.
type Identity struct {
	// Model is the model_name label.
	Model string
	// Start is when the process started on the wall's clock; _created series and
	// process_start_time_seconds show it.
	Start time.Time
}

// Write writes all families as text.
func Write(w io.Writer, id Identity, s engine.Stats) error {
	for _, mf := range Families(id, s) {
		if _, err := expfmt.MetricFamilyToText(w, mf); err != nil {
			return err
		}
	}
	return nil
}

// Families are all families, in the order in which vLLM writes them.
func Families(id Identity, s engine.Stats) []*dto.MetricFamily {
	b := &builder{
		labels:  []*dto.LabelPair{label("engine", "0"), label("model_name", id.Model)},
		created: unixSeconds(id.Start),
	}
	pythonFamilies(b, s)
	processFamilies(b, id, s)
	engineFamilies(b, s)
	requestFamilies(b, s)
	return b.out
}

// builder collects families. Labels of every series of the engine are sorted by
// name, as prometheus_client sorts them.
type builder struct {
	out     []*dto.MetricFamily
	labels  []*dto.LabelPair
	created float64
}

func (b *builder) family(name, help string, t dto.MetricType, metrics ...*dto.Metric) {
	b.out = append(b.out, &dto.MetricFamily{
		Name: proto.String(name), Help: proto.String(help), Type: t.Enum(), Metric: metrics,
	})
}

// variants is one family whose series differ in one more label.
type variants struct {
	label  string
	values []string
	at     func(i int) float64
}

func (b *builder) gauge(name, help string, v float64) {
	b.family(name, help, dto.MetricType_GAUGE, gauge(v, b.labels...))
}

func (b *builder) gauges(name, help string, v variants) {
	b.family(name, help, dto.MetricType_GAUGE, b.series(v, gauge)...)
}

// counter writes name_total and name_created.
func (b *builder) counter(name, help string, v float64) {
	b.family(name+"_total", help, dto.MetricType_COUNTER, counter(v, b.labels...))
	b.family(name+"_created", help, dto.MetricType_GAUGE, gauge(b.created, b.labels...))
}

func (b *builder) counters(name, help string, v variants) {
	b.family(name+"_total", help, dto.MetricType_COUNTER, b.series(v, counter)...)
	v.at = func(int) float64 { return b.created }
	b.family(name+"_created", help, dto.MetricType_GAUGE, b.series(v, gauge)...)
}

// histogram writes name and name_created.
func (b *builder) histogram(name, help string, h engine.Histogram) {
	m := &dto.Histogram{SampleCount: proto.Uint64(h.Count), SampleSum: proto.Float64(h.Sum)}
	cumulative := uint64(0)
	for i, n := range h.Counts {
		bound := math.Inf(+1)
		if i < len(h.Bounds) {
			bound = h.Bounds[i]
		}
		cumulative += n
		m.Bucket = append(m.Bucket, &dto.Bucket{UpperBound: proto.Float64(bound), CumulativeCount: proto.Uint64(cumulative)})
	}
	b.family(name, help, dto.MetricType_HISTOGRAM, &dto.Metric{Label: b.labels, Histogram: m})
	b.family(name+"_created", help, dto.MetricType_GAUGE, gauge(b.created, b.labels...))
}

func (b *builder) series(v variants, metric func(float64, ...*dto.LabelPair) *dto.Metric) []*dto.Metric {
	out := []*dto.Metric{}
	for i, value := range v.values {
		out = append(out, metric(v.at(i), with(b.labels, label(v.label, value))...))
	}
	return out
}

// with inserts a label where its name belongs.
func with(labels []*dto.LabelPair, l *dto.LabelPair) []*dto.LabelPair {
	out := make([]*dto.LabelPair, 0, len(labels)+1)
	for _, each := range labels {
		if l != nil && l.GetName() < each.GetName() {
			out, l = append(out, l), nil
		}
		out = append(out, each)
	}
	if l != nil {
		out = append(out, l)
	}
	return out
}

func label(name, value string) *dto.LabelPair {
	return &dto.LabelPair{Name: proto.String(name), Value: proto.String(value)}
}

func gauge(v float64, labels ...*dto.LabelPair) *dto.Metric {
	return &dto.Metric{Label: labels, Gauge: &dto.Gauge{Value: proto.Float64(v)}}
}

func counter(v float64, labels ...*dto.LabelPair) *dto.Metric {
	return &dto.Metric{Label: labels, Counter: &dto.Counter{Value: proto.Float64(v)}}
}

func unixSeconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }
