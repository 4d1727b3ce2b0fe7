// SPDX-License-Identifier: Apache-2.0

package promsli

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// kind is what a metric is to Prometheus. SLO files do not say it, so its name decides, or an option.
type kind int

const (
	histogram kind = iota
	counter
	gauge
)

// Kinds say what SLO files cannot and a metric's name does not: metrics, spelled as in the files, that are histograms or
// gauges.
type Kinds struct {
	Histograms, Gauges []string
}

// source is a metric with its kind and matchers.
type source struct {
	kind     kind
	name     string // in Prometheus spelling, without _bucket, _count …
	matchers []string
}

var (
	// partSuffix is what Prometheus appends to the parts of a histogram.
	partSuffix = regexp.MustCompile(`_(bucket|sum|count)$`)
	// prometheusName is a name in Prometheus spelling, which is used as it is. Any other is an OTLP name.
	prometheusName = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)
)

// source reads a selector. Events tells the good, bad and total of a ratio, which are counted and not compared.
func (k Kinds) source(s *openslo.Selector, unit string, events bool) (source, error) {
	if why := beyond(s); why != "" {
		return source{}, errors.New(why)
	}
	if s.Signal != openslo.SignalMetrics {
		return source{}, fmt.Errorf("it is made of %s, which Prometheus does not have", s.Signal)
	}
	src := source{name: s.Metric, kind: k.of(s, unit, events)}
	if src.kind == histogram {
		src.name = partSuffix.ReplaceAllString(src.name, "")
	}
	if !prometheusName.MatchString(src.name) {
		src.name = suffixed(metricName(src.name), s, unit, src.kind, events)
	}
	var err error
	src.matchers, err = matchers(s.Condition)
	return src, err
}

// beyond says what of a selector has no equal in PromQL; it is empty where all has.
func beyond(s *openslo.Selector) string {
	switch {
	case s.Rate > 0:
		return "it is a rate over intervals of " + Span(s.Rate) + ", of which each is one event: PromQL cannot say which of them had input"
	case s.Expected != "":
		return "it looks at what " + s.Expected + " counted and was not measured, which may be good or bad: PromQL has no bounds"
	case s.Range != nil:
		return "it refuses values that are not plausible, and PromQL does not see single values"
	case s.Counted != "":
		return "it has a condition on what is counted beside that on what is selected, and PromQL has one place for both"
	}
	return ""
}

// of is the kind of what a selector names.
func (k Kinds) of(s *openslo.Selector, unit string, events bool) kind {
	seconds := openslo.UnitOfName(s.Metric) == "seconds" || !events && unit == "seconds"
	switch {
	case slices.Contains(k.Gauges, s.Metric):
		return gauge
	case slices.Contains(k.Histograms, s.Metric), strings.HasSuffix(s.Metric, "_bucket"):
		return histogram
	case strings.HasSuffix(s.Metric, "_total"):
		return counter
	case seconds:
		return histogram
	case events:
		return counter
	default:
		return gauge
	}
}

// metricName is an OTLP name as Prometheus spells it, without suffixes.
func metricName(name string) string {
	if name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	return escape(name)
}

// unitWords are the units that a file may write, as Prometheus spells them behind a name.
var unitWords = map[string]string{
	"ns": "nanoseconds", "us": "microseconds", "µs": "microseconds", "ms": "milliseconds", "s": "seconds",
	"min": "minutes", "h": "hours", "d": "days", "%": "percent", "1": "ratio",
	"By": "bytes", "KiBy": "kibibytes", "MiBy": "mebibytes", "GiBy": "gibibytes", "TiBy": "tebibytes",
	"kBy": "kilobytes", "MBy": "megabytes", "GBy": "gigabytes",
}

// suffixed appends to an OTLP name what Prometheus appends: the unit, and _total to counters.
func suffixed(name string, s *openslo.Selector, unit string, k kind, events bool) string {
	word := unit
	switch {
	case unitWords[s.Unit] != "":
		word = unitWords[s.Unit]
	case s.Unit != "":
		word = escape(s.Unit)
	case events:
		word = openslo.UnitOfName(s.Metric)
	}
	if word != "" && !strings.HasSuffix(name, "_"+word) {
		name += "_" + word
	}
	if k == counter && !strings.HasSuffix(name, "_total") {
		name += "_total"
	}
	return name
}

// selector is PromQL for the source, or for a part of its histogram, with further matchers.
func (s source) selector(part string, more ...string) string {
	all := slices.Concat(more, s.matchers)
	if len(all) == 0 {
		return s.name + part
	}
	return s.name + part + "{" + strings.Join(all, ", ") + "}"
}

// le matches a bucket boundary in every spelling that an exporter may give it: 1, 1.0 and 1e+06 are numbers to us and
// texts to Prometheus.
func le(boundary float64) string {
	boundary = tidy(boundary)
	var forms []string
	for _, f := range []string{
		strconv.FormatFloat(boundary, 'f', -1, 64),
		strconv.FormatFloat(boundary, 'g', -1, 64),
	} {
		if !slices.Contains(forms, f) {
			forms = append(forms, f)
		}
		if whole := f + ".0"; !strings.ContainsAny(f, ".e") && !slices.Contains(forms, whole) {
			forms = append(forms, whole)
		}
	}
	if len(forms) == 1 {
		return fmt.Sprintf("le=%q", forms[0])
	}
	for i, f := range forms {
		forms[i] = regexp.QuoteMeta(f)
	}
	return fmt.Sprintf("le=~%q", strings.Join(forms, "|"))
}
