// SPDX-License-Identifier: Apache-2.0

package openslo

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestATimeWindowKnowsItsBounds(t *testing.T) {
	const layout = "2006-01-02 15:04"
	f := func(duration, zone, start, at, wantStart, wantEnd string) {
		t.Helper()
		d, err := ParseDuration(duration)
		require.NoError(t, err)
		w := TimeWindow{Duration: d, Rolling: true}
		loc := time.UTC
		if zone != "" {
			loc, err = time.LoadLocation(zone)
			require.NoError(t, err)
			w = TimeWindow{Duration: d, Location: loc}
			w.Start, err = time.ParseInLocation(layout, start, loc)
			require.NoError(t, err)
		}
		moment, err := time.ParseInLocation(layout, at, loc)
		require.NoError(t, err)
		from, to, ok := w.Bounds(moment)
		require.Equal(t, wantStart != "", ok)
		if ok {
			assert.Equal(t, wantStart+" to "+wantEnd, from.In(loc).Format(layout)+" to "+to.In(loc).Format(layout))
		}
	}
	// rolling
	f("28d", "", "", "2026-03-01 12:00", "2026-02-01 12:00", "2026-03-01 12:00")
	f("1w", "", "", "2026-03-08 00:00", "2026-03-01 00:00", "2026-03-08 00:00")
	f("90m", "", "", "2026-03-08 01:00", "2026-03-07 23:30", "2026-03-08 01:00")
	f("1M", "", "", "2026-03-31 00:00", "2026-02-28 00:00", "2026-03-31 00:00")
	// calendar
	f("1M", "UTC", "2026-01-01 00:00", "2026-01-01 00:00", "2026-01-01 00:00", "2026-02-01 00:00") // start is in it
	f("1M", "UTC", "2026-01-01 00:00", "2026-02-01 00:00", "2026-02-01 00:00", "2026-03-01 00:00") // end is not
	f("1M", "UTC", "2026-01-01 00:00", "2031-12-31 23:59", "2031-12-01 00:00", "2032-01-01 00:00")
	f("1M", "UTC", "2024-01-31 09:00", "2024-02-29 08:59", "2024-01-31 09:00", "2024-02-29 09:00")
	f("1M", "UTC", "2024-01-31 09:00", "2024-03-01 00:00", "2024-02-29 09:00", "2024-03-31 09:00")
	f("1Q", "UTC", "2026-01-01 00:00", "2026-08-01 00:00", "2026-07-01 00:00", "2026-10-01 00:00")
	f("1Y", "UTC", "2024-02-29 00:00", "2025-03-01 00:00", "2025-02-28 00:00", "2026-02-28 00:00")
	f("2w", "UTC", "2026-01-05 00:00", "2026-01-20 00:00", "2026-01-19 00:00", "2026-02-02 00:00")
	f("1M", "UTC", "2026-01-01 00:00", "2025-12-31 23:59", "", "") // before it begins
	// a day of 23 hours, one of 25, and the midnight of another zone
	f("1d", "Europe/Berlin", "2026-01-01 00:00", "2026-03-29 12:00", "2026-03-29 00:00", "2026-03-30 00:00")
	f("1d", "Europe/Berlin", "2026-01-01 00:00", "2026-10-25 23:30", "2026-10-25 00:00", "2026-10-26 00:00")
	f("1d", "Asia/Kolkata", "2026-01-01 00:00", "2026-06-01 00:10", "2026-06-01 00:00", "2026-06-02 00:00")
}

// Scenario: a moment in every hour of four years, windows of every unit. Guarantees: it lies in its window, and the next
// window begins where it ends, whatever the calendar does.
func TestCalendarWindowsLieSideBySide(t *testing.T) {
	loc, err := time.LoadLocation("America/New_York")
	require.NoError(t, err)
	for _, unit := range []byte("dwMQY") {
		w := TimeWindow{Duration: Duration{Count: 1, Unit: unit}, Start: time.Date(2024, 1, 31, 2, 30, 0, 0, loc), Location: loc}
		for at := w.Start; at.Before(w.Start.AddDate(4, 0, 0)); at = at.Add(time.Hour) {
			start, end, ok := w.Bounds(at)
			require.True(t, ok)
			require.False(t, at.Before(start), "%s in %s to %s", at, start, end)
			require.True(t, at.Before(end), "%s in %s to %s", at, start, end)
			next, _, _ := w.Bounds(end)
			require.True(t, next.Equal(end), "%s is followed by %s", end, next)
		}
	}
}
