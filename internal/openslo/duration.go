// SPDX-License-Identifier: Apache-2.0

package openslo

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Duration is an OpenSLO duration shorthand: a count and one of m, h, d, w, M, Q and Y. Months, quarters and
// years have no fixed length, so a Duration is kept as it was written until a calendar is at hand.
type Duration struct {
	Count int
	Unit  byte
}

// ParseDuration reads the duration shorthand of OpenSLO, e.g. 28d.
func ParseDuration(s string) (Duration, error) { return parseDuration(s, "28d") }

func parseDuration(s, example string) (Duration, error) {
	if len(s) < 2 {
		return Duration{}, fmt.Errorf("%q is not a duration: write a count and one of m, h, d, w, M, Q, Y, e.g. %s", s, example)
	}
	unit := s[len(s)-1]
	switch unit {
	case 'm', 'h', 'd', 'w', 'M', 'Q', 'Y':
	default:
		return Duration{}, fmt.Errorf("%q has no known unit: write one of m, h, d, w, M, Q, Y, e.g. %s", s, example)
	}
	n, err := strconv.Atoi(s[:len(s)-1])
	if err != nil || n <= 0 {
		return Duration{}, fmt.Errorf("%q has no positive whole count before %q, e.g. %s", s, unit, example)
	}
	return Duration{Count: n, Unit: unit}, nil
}

// String is the shorthand again.
func (d Duration) String() string {
	return strconv.Itoa(d.Count) + string(rune(d.Unit))
}

// Approx is the length with a month of 30, a quarter of 90 and a year of 365 days.
func (d Duration) Approx() time.Duration {
	const day = 24 * time.Hour
	n := time.Duration(d.Count)
	switch d.Unit {
	case 'm':
		return n * time.Minute
	case 'h':
		return n * time.Hour
	case 'd':
		return n * day
	case 'w':
		return n * 7 * day
	case 'M':
		return n * 30 * day
	case 'Q':
		return n * 90 * day
	default:
		return n * 365 * day
	}
}

// GoDuration writes a Go duration as people do: 5m, not 5m0s.
func GoDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
