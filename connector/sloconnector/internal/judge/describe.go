// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// describe says in words what was measured against what was promised.
func (s *Series) describe(r *Result) string {
	slo := &s.promise.slo
	if r.State == NoData {
		return slo.ID + " had no data"
	}
	if slo.Indicator.Ratio != nil {
		return fmt.Sprintf("%s was %s, promised at least %s", slo.ID, number(r.Value), number(s.promise.target()))
	}
	bound := "at most"
	if !slo.Objective.Op.AtMost() {
		bound = "at least"
	}
	return fmt.Sprintf("%s was %s %s, promised %s %s for %s %% of events",
		slo.ID, number(r.Value), slo.Unit, bound, number(slo.Objective.Value), number(100*s.promise.target()))
}

// number is short for people: four significant digits.
func number(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

// span writes a window as its file does: 5m, not 5m0s.
func span(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
