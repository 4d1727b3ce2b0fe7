// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"github.com/otelcol-llm/otelcol-llm/internal/delta"
)

// Reason says why an item that an SLO selects was not counted.
type Reason int

// The reasons, which every README explains by their names.
const (
	None Reason = iota
	Late
	Future
	NoTimestamp
	NoRecordedValue
	Baseline
	Reset
	Stale
	NoValue
	NotFinite
	Sentinel
	OutOfRange
	Negative
	BadBuckets
	CountMismatch
	NoTemporality
	NoInterval
	UnsupportedShape
	ConditionError
	LayoutLimit
	SeriesLimit
	Duplicate
	Excluded
	Implausible
	UnknownSLO // of a metric that a component takes for itself
	Untrusted  // likewise
	reasons
)

var names = [reasons]string{
	Late: "late", Future: "future", NoTimestamp: "no_timestamp", NoRecordedValue: "no_recorded_value",
	Baseline: "baseline", Reset: "reset", Stale: "stale", NoValue: "no_value", NotFinite: "not_finite", OutOfRange: "out_of_range", Sentinel: "sentinel",
	Negative: "negative", BadBuckets: "bad_buckets", CountMismatch: "count_mismatch", NoTemporality: "no_temporality",
	NoInterval: "no_interval", UnsupportedShape: "unsupported_shape", ConditionError: "condition_error",
	LayoutLimit: "layout_limit", SeriesLimit: "series_limit",
	Duplicate: "duplicate", Excluded: "excluded", Implausible: "implausible", UnknownSLO: "unknown_slo", Untrusted: "untrusted",
}

func (r Reason) String() string { return names[r] }

// Reasons are the names of all reasons but None.
func Reasons() []string { return names[None+1:] }

// Counts collects what happened to the items of a batch, so that instruments are touched once a batch.
type Counts struct {
	Accepted int64
	refused  [reasons]int64
}

// Refuse counts items that did not count; None is for those that no SLO selects, which are nobody's.
func (c *Counts) Refuse(why Reason, n int) { c.refused[why] += int64(n) }

// Refused calls f for every reason for which items were refused.
func (c *Counts) Refused(f func(why Reason, n int64)) {
	for i, n := range c.refused {
		if why := Reason(i); n > 0 && why != None {
			f(why, n)
		}
	}
}

// ReasonOf says why a cumulative point tells of no new events, None if it does.
func ReasonOf(outcome delta.Outcome) Reason {
	switch outcome {
	case delta.Baseline:
		return Baseline
	case delta.Reset:
		return Reset
	case delta.Stale:
		return Stale
	default:
		return None
	}
}
