// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"errors"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/selection"
	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
	"github.com/otelcol-llm/otelcol-llm/internal/tenant"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// Sink is what observations are for. SLOs go by their index in the catalog; times are event times in Unix nanoseconds.
type Sink interface {
	// GroupBy are the attribute keys by which an SLO's observations are told apart.
	GroupBy(slo int) []string
	// Series is where those go whose keys have these values, "" for one that is absent. The values are not kept.
	Series(slo int, values []string) Series
	// Late reports whether the window that holds t is closed.
	Late(s Series, t int64) bool
	// PaneStart is the start of the shortest span that is told apart, and holds t.
	PaneStart(slo int, t int64) int64
	// WindowStart is the start of the evaluation window that holds t.
	WindowStart(slo int, t int64) int64
	// LateBefore is the event time before which everything is late.
	LateBefore() int64
	// Exemplar is given the trace behind an observation at t.
	Exemplar(s Series, t int64, x Exemplar)
	// Unknown is told that some values of an SLO are not a number.
	Unknown(slo int)
}

// Series takes the observations of one SLO and group. Those that return false took nothing: there are too many different bucket
// layouts.
type Series interface {
	// Gone reports whether the series was forgotten: Sink.Series has its successor.
	Gone() bool
	// Cover notes that a point at t, which is added besides, tells of all that happened since an event time.
	Cover(since, t int64)
	AddValue(t int64, v float64) bool
	// AddExplicit adds buckets, n values in all. bounds may be kept and are never changed; counts are not kept.
	AddExplicit(t int64, bounds []float64, counts []uint64, n uint64) bool
	AddExponential(t int64, e *sketch.Exponential, n uint64) bool
	// AddUnknown adds values of which nothing is known, AddExpected how many there should have been.
	AddUnknown(t int64, n uint64)
	AddExpected(t int64, n float64)
	// AddAmount adds to what a rate is made of.
	AddAmount(t int64, v float64)
	// AddGood, AddBad and AddTotal add events of a ratio, AddRaw one that is good to a share.
	AddGood(t int64, n float64)
	AddBad(t int64, n float64)
	AddTotal(t int64, n float64)
	AddRaw(t int64, good float64)
	// AddParts adds events of which both parts are known (part) or all are (whole), though there are none.
	AddParts(t int64, good, total float64, part, whole bool)
}

// Exemplar is the trace behind an observation.
type Exemplar struct {
	TraceID [16]byte
	SpanID  [8]byte
	Value   float64 // in the base unit
}

// Options are the settings of an Intake.
type Options struct {
	Watermark window.WatermarkOptions
	// MaxInputs bounds the input series, TTL is how long one is remembered without points.
	MaxInputs int
	TTL       time.Duration
	// MaxRecentSpans is how many spans are remembered; 0 remembers none.
	MaxRecentSpans int
	Tenants        *tenant.Resolver
	// Text is the value of a group-by key as text; nil takes it as it is written.
	Text func(key string, v pcommon.Value) string
	// Take is offered each metric before the catalog is asked, and reports whether it was for the component itself; nil takes none.
	Take   func(b *Batch) bool
	Logger *zap.Logger
}

// Intake is what is known of the input.
type Intake struct {
	// Watermark says how far the input has come.
	Watermark *window.Watermark
	// Counts is what became of the items since it was last cleared.
	Counts Counts

	to      Sink
	options Options
	*Selectors
	inputs  *inputs
	recent  recent
	scratch scratch
	batch   Batch
}

// Selectors find the data that the SLOs of a catalog are made of.
type Selectors struct {
	slos     *openslo.Catalog
	excluded []exclusions // by SLO
	uses     *selection.Metrics
	spans    *selection.Spans
	records  *selection.Records
}

// Compile makes selectors. It reports all expressions that do not compile.
func Compile(slos *openslo.Catalog, set component.TelemetrySettings) (*Selectors, error) {
	uses, err := selection.ForMetrics(slos, set)
	errs := []error{err}
	spans, err := selection.ForTraces(slos, set)
	errs = append(errs, err)
	records, err := selection.ForLogs(slos, set)
	s := &Selectors{slos: slos, uses: uses, spans: spans, records: records}
	for i := range slos.SLOs {
		s.excluded = append(s.excluded, exclusionsOf(slos, slos.SLOs[i].ID))
	}
	return s, errors.Join(append(errs, err)...)
}

// New returns an intake that has heard nothing.
func New(s *Selectors, to Sink, o Options) *Intake {
	return &Intake{
		Watermark: window.NewWatermark(o.Watermark), to: to, options: o, Selectors: s,
		inputs: newInputs(o.MaxInputs, o.TTL), recent: newRecent(o.MaxRecentSpans),
	}
}

// Select goes on with other selectors: each input series finds its SLOs anew with its next point, and keeps its last one.
func (e *Intake) Select(s *Selectors) {
	e.Selectors = s
	e.inputs.generation++
}

// Expire forgets input series that were silent for too long at a wall time.
func (e *Intake) Expire(now int64) { e.inputs.expire(now) }

// Sizes are the numbers of input series and of spans that are remembered.
func (e *Intake) Sizes() (inputs, spans int) { return len(e.inputs.series), e.recent.len() }

// Evicted is how many input series were forgotten.
func (e *Intake) Evicted() uint64 { return e.inputs.evicted }
