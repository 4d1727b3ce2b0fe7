// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"
)

// account is a promise to one group whose books are to be told.
type account struct {
	slo   string
	group map[string]string
}

// balancedAfter is when the books are balanced that know of all until a moment: the Collector does it at each full minute of event time.
func balancedAfter(t time.Time) time.Time {
	return t.Truncate(time.Minute).Add(time.Minute)
}

// tellBooks says what the broken promise has cost, once that is known.
func (n *narrator) tellBooks(ctx context.Context) {
	if n.kept == nil || n.over.IsZero() || n.told["books"] {
		return
	}
	at, of := balancedAfter(n.over), equals(n.kept.group)+fmt.Sprintf(",slo_id=%q", n.kept.slo)
	told := func(series string) (float64, bool) { // of that minute, however late it is told or asked for
		return n.database.number(ctx, fmt.Sprintf("%[1]s and timestamp(%[1]s) == %[2]d", series, at.Unix()), at)
	}
	left, budget := told("slo_error_budget_remaining_ratio{" + of + "}")
	burn, rate := told(`slo_burn_rate_ratio{window="5m",` + of + "}")
	if !budget || !rate {
		return // at the next look
	}
	n.told["books"] = true
	n.say("the error budget of %s since the start: %.0f %% left\n%sburn rate over 5 minutes: %.1f times what the 28 days allow; from 14.4 over an hour on somebody is paged",
		labels(n.kept.group), 100*left, wrapped, burn)
}

// tellEnd says that nothing more happens.
func (n *narrator) tellEnd() {
	if n.told["end"] || !n.told["books"] || n.worse != nil || n.awaitsLeak() {
		return
	}
	n.told["end"] = true
	n.say("that is the whole story, on a page: %s\n%sit goes on running until Ctrl-C", n.console, wrapped)
}
