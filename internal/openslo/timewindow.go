// SPDX-License-Identifier: Apache-2.0

package openslo

import (
	"time"
	_ "time/tzdata" // what is a valid file must not depend on the zone database of the machine
)

// maxWindow bounds time windows; it also keeps the arithmetic of durations from overflowing.
const maxWindow = 10 * 366 * 24 * time.Hour

const startTimeLayout = "2006-01-02 15:04:05"

// readDuration reads a duration shorthand.
func readDuration(v value, example string) (Duration, bool) {
	s, ok := v.quantity(example)
	if !ok {
		return Duration{}, false
	}
	d, err := parseDuration(s, example)
	if err != nil {
		v.problemf("%v", err)
		return Duration{}, false
	}
	if one := (Duration{Count: 1, Unit: d.Unit}).Approx(); d.Count > int(maxWindow/one) {
		v.problemf("%s is longer than 10Y: write less", s)
		return Duration{}, false
	}
	return d, true
}

// readTimeWindow reads timeWindow: a list of exactly one rolling or calendar-aligned window.
func readTimeWindow(v value) TimeWindow {
	items, ok := v.list()
	if !ok {
		return TimeWindow{}
	}
	if len(items) > 1 {
		v.problemf("has %d windows: OpenSLO takes exactly one", len(items))
		return TimeWindow{}
	}
	o, ok := items[0].object("duration", "isRolling", "calendar")
	if !ok {
		return TimeWindow{}
	}
	w := TimeWindow{}
	d, haveDuration := o.need("duration", "write e.g. 28d")
	if haveDuration {
		w.Duration, haveDuration = readDuration(d, "28d")
	}
	rolling, written := false, false
	if r, ok := o.get("isRolling"); ok {
		rolling, written = r.boolean()
		if !written {
			return w
		}
	}
	w.Rolling = rolling
	switch {
	case o.has("calendar") && rolling:
		o.problemf("has isRolling: true and calendar: keep one")
	case o.has("calendar"):
		if haveDuration && (w.Duration.Unit == 'm' || w.Duration.Unit == 'h') {
			word := map[byte]string{'m': "minutes", 'h': "hours"}[w.Duration.Unit]
			d.problemf("%s counts %s, and a calendar window is of d, w, M, Q or Y: write e.g. 1M for a month", w.Duration, word)
			w.Duration = Duration{} // a wrong one would only make slices look too long
		}
		if c, ok := o.get("calendar"); ok {
			w.Start, w.Location = readCalendar(c)
		}
	case !rolling && written:
		o.need("calendar", "say when a window that is not rolling starts, e.g. calendar: {startTime: 2026-01-01 00:00:00, timeZone: UTC}")
	case !rolling:
		o.need("isRolling", "write true, or give the window a calendar")
	}
	return w
}

func readCalendar(v value) (time.Time, *time.Location) {
	o, ok := v.object("startTime", "timeZone")
	if !ok {
		return time.Time{}, nil
	}
	return readStart(o)
}

// readStart reads startTime and timeZone. The location is nil where it is no good.
func readStart(o object) (time.Time, *time.Location) {
	var loc *time.Location
	if z, ok := o.need("timeZone", "name an IANA time zone, e.g. UTC or America/New_York"); ok {
		if name, ok := z.text(); ok {
			var err error
			// Local is a name to the library only: it would be another zone on another machine.
			if loc, err = time.LoadLocation(name); err != nil || name == "Local" {
				z.problemf("%s is no IANA time zone: write e.g. UTC or America/New_York", shown(name))
				loc = nil
			}
		}
	}
	s, ok := o.need("startTime", "write date and time, e.g. 2026-01-01 00:00:00")
	if !ok {
		return time.Time{}, loc
	}
	start, _ := readLocalTime(s, loc, "start")
	return start, loc
}

// readLocalTime reads a date and time in a location, which may be unknown.
func readLocalTime(v value, loc *time.Location, what string) (time.Time, bool) {
	written, _ := v.scalar() // YAML takes it for a timestamp; as OpenSLO has it, it has no zone
	if loc == nil {
		loc = time.UTC
	}
	t, err := time.ParseInLocation(startTimeLayout, written, loc)
	if err != nil {
		v.problemf("%s is no %s time: write date and time without a zone, e.g. 2026-01-01 00:00:00", shown(written), what)
	}
	return t, err == nil
}
