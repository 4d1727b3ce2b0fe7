// SPDX-License-Identifier: Apache-2.0

package openslo

import (
	"regexp"
	"strings"
)

// indicator is an Indicator with what the derivations of its SLOs need to know.
type indicator struct {
	Indicator
	unit sourceUnit
	at   value // where complaints about the unit go
	ok   bool  // false when something in it is wrong; what depends on it is then not checked
}

// sourceUnit is what a metricSource says about its unit.
type sourceUnit struct {
	unitScale        // base is "" when nothing is known
	written   string // as the spec or the metric's name spells it
	explicit  bool   // metricSource.spec.unit, not only the metric's name
}

// role is the place of a metricSource in its indicator.
type role int

const (
	roleThreshold role = iota
	roleCount          // good, bad, total
	roleRaw
)

// readIndicatorSpec reads the spec of an SLI document or of an inline indicator.
func (p *parser) readIndicatorSpec(v value) indicator {
	ind := indicator{at: v}
	o, ok := v.object("description", "thresholdMetric", "ratioMetric")
	if !ok {
		return ind
	}
	readDescription(o)
	threshold, ratio := o.has("thresholdMetric"), o.has("ratioMetric")
	switch {
	case threshold && ratio:
		o.problemf("has thresholdMetric and ratioMetric: keep one")
	case threshold:
		if t, ok := o.get("thresholdMetric"); ok {
			ind.Threshold, ind.unit, ind.ok = p.readMetric(t, roleThreshold)
		}
	case ratio:
		if r, ok := o.get("ratioMetric"); ok {
			p.readRatio(r, &ind)
		}
	case o.meant["thresholdMetric"] || o.meant["ratioMetric"]:
	default:
		o.problemf("has no metric: write thresholdMetric or ratioMetric")
	}
	return ind
}

func (p *parser) readRatio(v value, ind *indicator) {
	o, ok := v.object("counter", "good", "bad", "total", "rawType", "raw")
	if !ok {
		return
	}
	ind.Ratio = &Ratio{}
	ind.ok = true
	if c, ok := o.get("counter"); ok {
		ind.Ratio.Counter, _ = c.boolean()
	}
	read := func(key string, role role) (*Selector, sourceUnit) {
		m, ok := o.get(key)
		if !ok {
			return nil, sourceUnit{}
		}
		s, unit, ok := p.readMetric(m, role)
		ind.ok = ind.ok && ok
		return s, unit
	}
	if t, ok := o.get("rawType"); ok {
		ind.Ratio.RawType, _ = oneOf(t, RawSuccess, RawFailure)
	}
	if o.has("raw") {
		if o.has("good") || o.has("bad") || o.has("total") {
			o.problemf("has raw besides good, bad or total: raw stands alone")
		}
		if !o.has("rawType") {
			o.problemf("has raw without rawType: write success or failure")
		}
		ind.Ratio.Raw, ind.unit = read("raw", roleRaw)
		return
	}
	if o.has("rawType") {
		o.problemf("has rawType without raw: remove it")
	}
	if o.has("good") == o.has("bad") && !o.meant["good"] && !o.meant["bad"] {
		o.problemf("takes exactly one of good and bad")
	}
	if !o.has("total") && !o.meant["total"] {
		o.problemf("has no total: write total, or raw where the metric is the ratio already")
	}
	var goodUnit, badUnit, totalUnit sourceUnit
	ind.Ratio.Good, goodUnit = read("good", roleCount)
	ind.Ratio.Bad, badUnit = read("bad", roleCount)
	ind.Ratio.Total, totalUnit = read("total", roleCount)
	if part := goodUnit.base + badUnit.base; ind.ok && part != totalUnit.base {
		o.problemf("its parts are in %s and %s: give both the same kind of unit",
			orUnknown(part), orUnknown(totalUnit.base))
		ind.ok = false
	}
}

func orUnknown(unit string) string {
	if unit == "" {
		return "no unit"
	}
	return unit
}

// readMetric reads {metricSource: …}.
func (p *parser) readMetric(v value, role role) (*Selector, sourceUnit, bool) {
	o, ok := v.object("metricSource")
	if !ok {
		return nil, sourceUnit{}, false
	}
	src, ok := o.need("metricSource", "say where the metric comes from, e.g. metricSource: {type: opentelemetry, spec: {metric: …}}")
	if !ok {
		return nil, sourceUnit{}, false
	}
	s, ok := src.object("metricSourceRef", "type", "spec")
	if !ok {
		return nil, sourceUnit{}, false
	}
	typ, ok := p.readSourceType(s)
	if !ok {
		return nil, sourceUnit{}, false
	}
	if typ != TypeOpenTelemetry {
		// Another tool's query: valid, and nothing here can tell what is in it.
		return &Selector{Type: typ, Scale: 1}, sourceUnit{}, true
	}
	spec, ok := s.need("spec", "say which metric, e.g. spec: {metric: vllm:time_to_first_token_seconds}")
	if !ok {
		return nil, sourceUnit{}, false
	}
	return p.readSelector(spec, role)
}

// readSourceType is the type of a metricSource: written, or that of the DataSource it refers to.
func (p *parser) readSourceType(s object) (string, bool) {
	var fromRef string
	if r, ok := s.get("metricSourceRef"); ok {
		name, ok := r.text()
		if !ok {
			return "", false
		}
		ds, known := p.dataSources[name]
		if !known {
			p.unresolved(r, KindDataSource, name)
			return "", false
		}
		fromRef = ds.Type
	}
	t, ok := s.get("type")
	if !ok {
		if fromRef == "" && !s.has("metricSourceRef") {
			s.need("type", "write opentelemetry, or the type of the tool that has the metric")
		}
		return fromRef, fromRef != ""
	}
	typ, ok := t.text()
	if ok && !checkType(t, typ) {
		return TypeOpenTelemetry, true // what else is wrong in it is told at once
	}
	return typ, ok
}

// checkType refuses near misses of opentelemetry: they would be taken for another tool's type, and the promise
// would go unmeasured without a word.
func checkType(v value, typ string) bool {
	if typ == TypeOpenTelemetry {
		return true
	}
	if nearest(typ, []string{TypeOpenTelemetry}) != "" || strings.EqualFold(typ, "otel") || strings.EqualFold(typ, "otlp") {
		v.problemf("%s is not known: did you mean %s?", shown(typ), TypeOpenTelemetry)
		return false
	}
	return true
}

// query tells a PromQL selector or expression where a name is wanted.
var query = regexp.MustCompile(`[\s{}()\[\]"'=]`)

// readSelector reads the spec of a metricSource of type opentelemetry.
func (p *parser) readSelector(v value, role role) (*Selector, sourceUnit, bool) {
	before := len(v.log.problems)
	o, ok := v.object(append([]string{"signal", "metric", "condition", "value", "unit"}, thresholdKeys...)...)
	if !ok {
		return nil, sourceUnit{}, false
	}
	s := &Selector{Type: TypeOpenTelemetry, Signal: SignalMetrics, Scale: 1}
	if sig, ok := o.get("signal"); ok {
		s.Signal, _ = oneOf(sig, SignalMetrics, SignalTraces, SignalLogs)
	}
	if c, ok := o.get("condition"); ok {
		s.Condition = p.expression(c, s.Signal, ExpressionCondition)
	}
	switch s.Signal {
	case SignalMetrics:
		if m, ok := o.need("metric", "name it, e.g. vllm:time_to_first_token_seconds"); ok {
			s.Metric, _ = readMetricName(m)
		}
		if o.has("value") {
			o.fields["value"].problemf("is for traces and logs: remove it, a metric has its own value")
		}
	case SignalTraces, SignalLogs:
		if o.has("metric") {
			o.fields["metric"].problemf("is for signal metrics: remove it, or remove signal: %s", s.Signal)
		}
		if role == roleCount {
			if o.has("value") {
				o.fields["value"].problemf("has no use here: good, bad and total count %s, so remove it", s.Signal)
			}
			break
		}
		if role == roleThreshold && !o.has("value") && (o.has("rate") || o.meant["rate"]) {
			break // each counts 1
		}
		if e, ok := o.need("value", `write an OTTL expression, e.g. 'span.attributes["gen_ai.latency.time_to_first_token"]'`); ok {
			s.Value = p.expression(e, s.Signal, ExpressionValue)
		}
	}
	p.readThresholdKeys(o, role, s)
	unit := readUnit(o, role, s)
	if s.Rate > 0 && len(v.log.problems) == before {
		unit = unit.perSecond(o, s)
	}
	return s, unit, len(v.log.problems) == before
}

// expression reads an OTTL expression, which the caller of Parse may check.
func (p *parser) expression(v value, signal Signal, kind ExpressionKind) string {
	text, ok := v.text()
	if !ok || p.opts.Check == nil || signal == "" {
		return text
	}
	if err := p.opts.Check(signal, kind, text); err != nil {
		v.problemf("%s", strings.Join(strings.Fields(err.Error()), " ")) // one problem, one line
	}
	return text
}

var quotedKey = regexp.MustCompile(`\["([^"]+)"\]`)

// readUnit tells a source's unit from spec.unit or else, for thresholds, from the name of the metric or of the
// last attribute in the value expression. It sets Unit and Scale of the selector.
func readUnit(o object, role role, s *Selector) sourceUnit {
	var unit sourceUnit
	if u, ok := o.get("unit"); ok {
		written, ok := u.scalar() // `unit: 1` is fine without quotes
		if !ok {
			u.text()
			return unit
		}
		known, ok := lookupUnit(written)
		if !ok {
			u.problemf("unit %s is not known: write one like %s, or leave it out and name the base unit in the annotation %s",
				shown(written), exampleUnits, annotationUnit)
			return unit
		}
		if role == roleRaw && known.base != "ratio" {
			u.problemf("unit %s is no ratio: raw is one, so write ratio or percent", shown(written))
			return unit
		}
		unit = sourceUnit{unitScale: known, written: written, explicit: true}
		if named, ok := unitOfSuffix(s.Metric); ok && role == roleThreshold {
			if named.base != known.base {
				u.problemf("unit %s is in %s, but the metric's name says %s: correct one", shown(written), known.base, named.base)
				return unit
			}
			// The name says what the data is in, and unit what the objective is written in.
			named.apply(s)
			return unit
		}
	} else if role == roleThreshold {
		unit = unitOfName(nameOfValue(s))
	}
	unit.apply(s)
	return unit
}

// apply sets the selector's unit: empty where the source is in the base unit already.
func (u sourceUnit) apply(s *Selector) {
	s.Unit, s.Scale = "", 1
	if u.base != "" && u.scale != 1 {
		s.Unit, s.Scale = u.written, u.scale
	}
}
