// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// Event is a violation that opened or closed. It does not change any more, and may be read while the judge goes on.
type Event struct {
	Opened   bool
	ID       string // deterministic: policy, group, first window
	Policy   string
	Of       *Identity // that of the first SLO in `when`: its labels are the violation's
	SLOs     []string  // all slo_ids
	Time     int64     // end of the window that decided
	Windows  int       // in which `when` held in a row when it opened
	Observed float64   // the SLI of Of in the window that decided; NaN without data
	Reason   string
	Exemplar Exemplar
}

// The reasons for which a violation closes although nothing was measured to be kept again.
const (
	reasonDeleted   = "deleted"
	reasonEdited    = "the indicator was edited, so its measurement begins anew"
	reasonForgotten = "no input for so long that the group was forgotten"
)

// keptAgain begins the reason of a violation that closed because its promises are kept.
const keptAgain = "kept again: "

// Kept reports whether a violation closed because its promises are kept again, and not for want of data or of a promise.
func (e *Event) Kept() bool { return !e.Opened && strings.HasPrefix(e.Reason, keptAgain) }

func (t *Tally) whyOpened(empty bool) string {
	windows := fmt.Sprintf("%d windows of %s in a row", t.streak, openslo.GoDuration(t.policy.spec.Window))
	if t.streak == 1 {
		windows = "a window of " + openslo.GoDuration(t.policy.spec.Window)
	}
	if empty {
		return fmt.Sprintf("no data in the last of %s, which the policy takes for missed: %s", windows, t.describe())
	}
	return fmt.Sprintf("missed in %s: %s", windows, t.describe())
}

func (t *Tally) whyClosed(empty bool) string {
	if empty {
		return "no data, which the policy takes for kept: " + t.describe()
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
	if slo.Indicator.Ratio != nil {
		return fmt.Sprintf("%s was %s, promised at least %s", slo.ID, number(r.Value), number(p.target()))
	}
	bound := "at most"
	if !slo.Objective.Op.AtMost() {
		bound = "at least"
	}
	return fmt.Sprintf("%s was %s %s, promised %s %s for %s %% of events",
		slo.ID, number(r.Value), slo.Unit, bound, number(slo.Objective.Value), number(100*p.target()))
}

// number is short for people: four significant digits.
func number(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
