// SPDX-License-Identifier: Apache-2.0

package openslo

import (
	"math"
	"strings"
	"time"
)

// thresholdKeys are the keys of a metricSource.spec that only a thresholdMetric may have.
var thresholdKeys = []string{"range", "expected", "rate", "counted"}

// readThresholdKeys reads what a thresholdMetric may say besides what it measures.
func (p *parser) readThresholdKeys(o object, role role, s *Selector) {
	if role != roleThreshold {
		for _, key := range thresholdKeys {
			if o.has(key) {
				o.fields[key].problemf("is for thresholdMetric only: remove it")
			}
		}
		return
	}
	if v, ok := o.get("rate"); ok {
		s.Rate = readRate(v)
	}
	if v, ok := o.get("range"); ok {
		s.Range = readRange(v)
		if s.Signal != SignalMetrics && o.has("rate") && !o.has("value") {
			v.problemf("has nothing to look at: without value each of the %s counts 1, so remove it or write value", s.Signal)
		}
	}
	if v, ok := o.get("expected"); ok {
		s.Expected = readExpected(v, o, s)
	}
	if v, ok := o.get("counted"); ok {
		switch {
		case s.Signal == SignalMetrics:
			v.problemf("is for traces and logs: remove it, and say in condition which data points are summed")
		case !o.has("rate") && !o.meant["rate"]:
			v.problemf("is for rates: write rate, e.g. rate: 1m, or write it as condition")
		default:
			s.Counted = p.expression(v, s.Signal, ExpressionCounted)
		}
	}
}

// maxRate keeps the intervals of a rate shorter than the windows that they are events of.
const maxRate = time.Hour

func readRate(v value) time.Duration {
	d := readGoDuration(v, "1m")
	if d > maxRate {
		v.problemf("%s is longer than 1h: write less, e.g. 1m", v.node.Value)
		return 0
	}
	return d
}

// readRange reads [min, max], still in the unit of the source.
func readRange(v value) *Range {
	before := len(v.log.problems)
	items := v.listOrNone()
	if len(v.log.problems) > before {
		return nil
	}
	if len(items) != 2 {
		v.problemf("has %s: write the least and the greatest value there can be, e.g. [0, 1] or [0, .inf]", count(len(items), "number"))
		return nil
	}
	r := Range{Min: readBound(items[0]), Max: readBound(items[1])}
	if len(v.log.problems) > before {
		return nil
	}
	if r.Min >= r.Max {
		v.problemf("[%s, %s] holds no range: write the smaller number first, e.g. [0, 1]", items[0].node.Value, items[1].node.Value)
		return nil
	}
	return &r
}

// readBound reads a number that may be infinite.
func readBound(v value) float64 {
	var f float64
	if v.node.ShortTag() == "!!float" && v.node.Decode(&f) == nil && math.IsInf(f, 0) {
		return f
	}
	f, _ = v.number()
	return f
}

// contains tells whether a value can be measured; a nil range holds all.
func (r *Range) contains(v float64) bool { return r == nil || v >= r.Min && v <= r.Max }

func readExpected(v value, o object, s *Selector) string {
	if s.Signal != SignalMetrics {
		v.problemf("is for signal metrics: remove it, each of the %s is seen by itself", s.Signal)
		return ""
	}
	if o.has("rate") {
		v.problemf("has no use with rate, whose events are intervals and not requests: remove one")
		return ""
	}
	name, ok := readMetricName(v)
	if ok && name == s.Metric {
		v.problemf("%s is the metric itself: name one that counts the requests, e.g. vllm:request_success_total", shown(name))
	}
	return name
}

// readMetricName reads the name of a metric.
func readMetricName(v value) (string, bool) {
	name, ok := v.text()
	if ok && query.MatchString(name) {
		v.problemf("%s is a query: write the metric's name and put the filter in condition", shown(name))
		return "", false
	}
	return name, ok
}

// perSecond makes the unit of a rate of the unit of what is summed.
func (u sourceUnit) perSecond(o object, s *Selector) sourceUnit {
	at, ok := o.get("unit")
	if !ok {
		at = o.fields["rate"]
	}
	switch {
	case strings.HasSuffix(u.base, perSecond):
		at.problemf("what is summed is in %s, which is a rate already: write in unit what is summed, e.g. tokens, or remove rate", u.base)
		return u
	case u.base == "ratio":
		at.problemf("what is summed is a ratio, and a sum of ratios is no rate: write in unit what is summed, e.g. tokens, or remove rate")
		return u
	case u.base == "":
		u.unitScale = unitScale{base: countOfName(s), scale: 1}
	}
	u.base += perSecond
	return u
}

const perSecond = "_per_second"

// countOfName is what a metric or attribute without a unit counts, by the last word of its name: vllm:generation_tokens_total
// and gen_ai.usage.output_tokens count tokens. Where no word tells, they are events.
func countOfName(s *Selector) string {
	name := kindSuffix.ReplaceAllString(nameSeparators.Replace(nameOfValue(s)), "")
	for _, what := range []string{"tokens", "requests"} {
		if name == what || strings.HasSuffix(name, "_"+what) {
			return what
		}
	}
	return "events"
}

// nameOfValue is the name that tells most of what a source measures: the metric's, or that of the last attribute in the
// value expression.
func nameOfValue(s *Selector) string {
	if attrs := quotedKey.FindAllStringSubmatch(s.Value, -1); len(attrs) > 0 {
		return attrs[len(attrs)-1][1]
	}
	return s.Metric
}
