// SPDX-License-Identifier: Apache-2.0

package openslo

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// readObjective reads one objective. Value is still in the unit of the source.
func readObjective(o object, ind indicator, slo SLO) (Objective, bool) {
	log := o.log
	before := len(log.problems)
	obj := Objective{DisplayName: o.optional("displayName")}
	switch {
	case ind.Threshold != nil:
		if op, ok := o.need("op", "write lte, gte, lt or gt: an event is good when its value compares so"); ok {
			obj.Op, _ = oneOf(op, OpLTE, OpGTE, OpLT, OpGT)
		}
		if v, ok := o.need("value", "write the threshold, in the unit of the metric"); ok {
			obj.Value = readThreshold(v)
			// The range of a rate is that of what is summed.
			if s := ind.Threshold; s.Rate == 0 && len(log.problems) == before && !s.Range.contains(obj.Value) {
				v.problemf("%s is outside the range of plausible values, [%s, %s]: correct one", v.node.Value, shortest(s.Range.Min), shortest(s.Range.Max))
			}
		}
	case ind.Ratio != nil:
		for _, key := range []string{"op", "value"} {
			if o.has(key) {
				o.fields[key].problemf("is for thresholdMetric only: remove it, a ratio is compared with target")
			}
		}
	}
	obj.Target = readTarget(o)
	readTimeSlice(o, &obj, slo)
	return obj, len(log.problems) == before
}

// withUnit is a number with a unit behind it.
var withUnit = regexp.MustCompile(`^([0-9.]+) ?([^0-9. ].*)$`)

func readThreshold(v value) float64 {
	if m := withUnit.FindStringSubmatch(v.node.Value); m != nil && v.node.ShortTag() == "!!str" {
		if _, known := lookupUnit(m[2]); known {
			v.problemf("%s has a unit: write %s here, and metricSource.spec.unit: %s if the metric is in it", v.node.Value, m[1], m[2])
			return 0
		}
	}
	n, _ := v.number()
	return n
}

func readTarget(o object) float64 {
	switch target, percent := o.has("target"), o.has("targetPercent"); {
	case target && percent:
		o.problemf("has target and targetPercent: keep one")
	case target:
		if v, ok := o.get("target"); ok {
			return readShare(v, 1)
		}
	case percent:
		if v, ok := o.get("targetPercent"); ok {
			return readShare(v, 100)
		}
	case o.meant["targetPercent"]:
	default:
		o.need("target", "write the share of good events that is promised, e.g. 0.95")
	}
	return 0
}

// readShare reads a number in [0, whole) as a share of whole.
func readShare(v value, whole float64) float64 {
	n, ok := v.number()
	if !ok {
		return 0
	}
	written := v.node.Value
	switch {
	case n >= 0 && n < whole:
		return n / whole
	case n == whole:
		v.problemf("%s is not in [0, %g): a promise of 100 %% leaves no error budget, so write less", written, whole)
	case whole == 1 && n > 1 && n < 100:
		v.problemf("%s is not in [0, 1): write %s, or targetPercent: %s", written, trimmed(n/100), written)
	default:
		v.problemf("%s is not in [0, %g): write the promised share in it", written, whole)
	}
	return 0
}

// readTimeSlice reads the two keys of the time-slice methods, which must stand exactly where they are used.
func readTimeSlice(o object, obj *Objective, slo SLO) {
	if slo.Budgeting == "" {
		return // reported already
	}
	if slo.Budgeting == Timeslices {
		if v, ok := o.need("timeSliceTarget", "write the share of good events that makes a slice good, e.g. 0.99"); ok {
			n, ok := v.number()
			if ok && (n <= 0 || n > 1) {
				v.problemf("%s is not in (0, 1]: write the share of good events that makes a slice good, e.g. 0.99", v.node.Value)
			}
			obj.TimeSliceTarget = n
		}
	} else if o.has("timeSliceTarget") {
		o.fields["timeSliceTarget"].problemf("is for budgetingMethod Timeslices: remove it")
	}
	if slo.Budgeting == Occurrences {
		if o.has("timeSliceWindow") {
			o.fields["timeSliceWindow"].problemf("is for budgetingMethod Timeslices and RatioTimeslices: remove it")
		}
		return
	}
	v, ok := o.need("timeSliceWindow", "write the length of a slice, e.g. 1m")
	if !ok {
		return
	}
	obj.TimeSliceWindow = readSliceWindow(v)
	if whole := slo.TimeWindow.Duration.Approx(); whole > 0 && obj.TimeSliceWindow >= whole {
		v.problemf("%s is not shorter than the time window of %s: write less", v.node.Value, slo.TimeWindow.Duration)
	}
}

// readSliceWindow reads a duration shorthand, or a number of minutes.
func readSliceWindow(v value) time.Duration {
	if tag := v.node.ShortTag(); tag == "!!int" || tag == "!!float" {
		minutes, ok := v.number()
		if !ok {
			return 0
		}
		if minutes <= 0 || minutes > 366*24*60 {
			v.problemf("%s minutes is no length of a slice: write e.g. 1m", v.node.Value)
			return 0
		}
		return time.Duration(minutes * float64(time.Minute))
	}
	return readFixedDuration(v, "5m")
}

// trimmed is a number without the noise of binary fractions: 99.95, not 99.95000000000002.
func trimmed(f float64) string {
	s := strconv.FormatFloat(f, 'f', 8, 64)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// shortest is a number with up to four digits behind the point.
func shortest(f float64) string {
	return strconv.FormatFloat(math.Round(f*1e4)/1e4, 'f', -1, 64)
}
