// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// EventKind is what an Event is of.
type EventKind int

const (
	// Violation is of a ViolationPolicy.
	Violation EventKind = iota
	// BurnAlert is of a burn rate.
	BurnAlert
)

// Event is a violation or a burn-rate alert that opened or closed. It does not change any more, and may be read while the
// judge goes on.
type Event struct {
	Kind      EventKind
	Opened    bool
	ID        string // deterministic: policy or condition, group, first window
	Policy    string // ViolationPolicy or AlertPolicy; empty for a general burn rate
	Condition string // of a BurnAlert
	Severity  string
	Targets   []openslo.AlertNotificationTarget
	Of        *Identity // of a Violation that of the first SLO in `when`: its labels are the violation's
	SLOs      []string  // all slo_ids
	Time      int64     // end of the window that decided
	Windows   int       // in which `when` held in a row when it opened
	Observed  float64   // the SLI of Of in the window that decided, or the burn rate; NaN without data
	Threshold float64   // of a BurnAlert
	Window    time.Duration
	Reason    string
	Exemplar  Exemplar
	// Incomplete says that not all was told of the window that decided.
	Incomplete bool
}

// The reasons for which a violation closes although nothing was measured to be kept again.
const (
	reasonDeleted   = "deleted"
	reasonEdited    = "the indicator or what it is grouped by was edited, so its measurement begins anew"
	reasonForgotten = "no input for so long that the group was forgotten"
)

// What a window lacks that a policy decides on by its onNoData.
const (
	reasonNoData     = "no data"
	reasonIncomplete = "not all was told"
)

// keptAgain begins the reason of a violation that closed because its promises are kept.
const keptAgain = "kept again: "

// Kept reports whether a violation closed because its promises are kept again, and not for want of data or of a promise.
func (e *Event) Kept() bool {
	return !e.Opened && e.Kind == Violation && strings.HasPrefix(e.Reason, keptAgain)
}

func (t *Tally) whyOpened(lacking string) string {
	windows := fmt.Sprintf("%d windows of %s in a row", t.streak, openslo.GoDuration(t.policy.spec.Window))
	if t.streak == 1 {
		windows = "a window of " + openslo.GoDuration(t.policy.spec.Window)
	}
	if lacking != "" {
		return fmt.Sprintf("%s in the last of %s, which the policy takes for missed: %s", lacking, windows, t.describe())
	}
	return fmt.Sprintf("missed in %s: %s", windows, t.describe())
}

func (t *Tally) whyClosed(lacking string) string {
	if lacking != "" {
		return lacking + ", which the policy takes for kept: " + t.describe()
	}
	return keptAgain + t.describe()
}

// describe says in words what every leaf measured against what it promised, those that were missed first.
func (t *Tally) describe() string {
	var missed, others []string
	for _, s := range t.leaves {
		text := s.promise.describe(t.result(s))
		if t.result(s).State == Violated {
			missed = append(missed, text)
		} else {
			others = append(others, text)
		}
	}
	text := strings.Join(missed, "; ")
	if len(others) == 0 {
		return text
	}
	if len(missed) > 0 {
		text += "; not missed: "
	}
	return text + strings.Join(others, "; ")
}

// describe says in words what was measured against what was promised.
func (p *promise) describe(r *Result) string {
	slo := &p.slo
	if r.State == NoData {
		return slo.ID + " had no data"
	}
	if slo.Indicator.Threshold == nil {
		return fmt.Sprintf("%s was %s, promised at least %s", slo.ID, number(r.Value), number(p.target()))
	}
	value := number(r.Value)
	switch {
	case r.Incomplete: // that nothing is proven says nothing of the source
	case math.IsInf(r.Upper, 1): // the source's last boundary is the most that can be said
		value = "at least " + number(max(r.Value, r.Lower))
	case math.IsInf(r.Lower, -1):
		value = "at most " + number(min(r.Value, r.Upper))
	}
	bound := "at most"
	if !slo.Objective.Op.AtMost() {
		bound = "at least"
	}
	return fmt.Sprintf("%s was %s %s, promised %s %s for %s %% of events",
		slo.ID, value, slo.Unit, bound, number(slo.Objective.Value), number(100*p.target()))
}

// number is short for people: four significant digits.
func number(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

// eventID is the same for every replica that sees the same input: what it is of, the group, and when it began.
func eventID(what string, of *Identity, first int64) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%d\x00%t\x00", what, first, of.Overflow())
	of.Group(func(key, value string) { fmt.Fprintf(h, "%d:%s=%d:%s", len(key), key, len(value), value) })
	return hex.EncodeToString(h.Sum(nil)[:16])
}
