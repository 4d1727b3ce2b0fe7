// SPDX-License-Identifier: Apache-2.0

package backfill

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func date(s string) time.Time {
	t, err := time.Parse("2006-01-02 15:04", s)
	if err != nil {
		panic(err)
	}
	return t
}

func TestTheYoungestDaysAreAskedForByTheHourAndTheRestByTheDay(t *testing.T) {
	f := func(start, end string, slice time.Duration, want ...string) {
		t.Helper()
		var got []string
		for _, s := range Plan(date(start), date(end), 24*time.Hour, slice) {
			got = append(got, s.Start.Format("2 15:04")+" – "+s.End.Format("2 15:04")+" by "+s.Step.String())
		}
		assert.Equal(t, want, got)
	}
	f("2026-03-01 07:42", "2026-03-29 07:42", 0,
		"1 07:45 – 1 08:00 by 5m0s",
		"1 08:00 – 2 00:00 by 1h0m0s",
		"2 00:00 – 26 00:00 by 24h0m0s",
		"26 00:00 – 29 07:00 by 1h0m0s",
		"29 07:00 – 29 07:40 by 5m0s")
	f("2026-03-28 00:00", "2026-03-29 00:00", 0, "28 00:00 – 29 00:00 by 1h0m0s")
	f("2026-03-28 00:00", "2026-03-28 02:00", 10*time.Minute, "28 00:00 – 28 02:00 by 1h0m0s")
	f("2026-03-28 00:00", "2026-03-28 02:10", 30*time.Minute, "28 00:00 – 28 02:00 by 1h0m0s")
	f("2026-03-28 00:01", "2026-03-28 00:04", 0)
	f("2026-03-28 00:00", "2026-03-27 00:00", 0)
}

// Guarantees: no moment is asked for twice, none is left out but less than a step at the ends, no answer is larger than
// Prometheus gives, and each step is a multiple of the slice.
func TestAPlanCoversTheWindowOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := date("2026-03-01 00:00").Add(time.Duration(rapid.Int64Range(0, int64(40*24*time.Hour)).Draw(t, "start")))
		end := start.Add(time.Duration(rapid.Int64Range(0, int64(400*24*time.Hour)).Draw(t, "length")))
		coarse := time.Duration(rapid.IntRange(1, 24).Draw(t, "coarse")) * time.Hour
		slice := time.Duration(rapid.IntRange(0, 90).Draw(t, "slice")) * time.Minute
		small := multiple(finest, slice)
		at := start
		for i, s := range Plan(start, end, coarse, slice) {
			if gap := s.Start.Sub(at); gap < 0 || gap > 0 && (i > 0 || gap >= small) {
				t.Fatalf("%v of %v is left out before %v", gap, small, s)
			}
			length := s.End.Sub(s.Start)
			if length <= 0 || length%s.Step != 0 || length/s.Step > maxSteps || s.Start.UnixNano()%int64(s.Step) != 0 {
				t.Fatalf("%v is no span", s)
			}
			if slice > 0 && s.Step%slice != 0 {
				t.Fatalf("%v is no multiple of %v", s.Step, slice)
			}
			at = s.End
		}
		if rest := end.Sub(at); rest < 0 || rest >= 2*small {
			t.Fatalf("%v is left out at the end", rest)
		}
	})
}
