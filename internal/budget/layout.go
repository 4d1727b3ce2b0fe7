// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"slices"
	"time"
)

// ladder are the widths that slots can have. Each divides the next, and all are aligned to the epoch, so that fine slots
// become coarse ones by adding them up.
var ladder = [...]time.Duration{
	time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 6 * time.Hour, day, 3 * day, 9 * day,
}

const day = 24 * time.Hour

// grace is how far a window's end may lie behind the newest event (the watermark does) and still find its far edge as
// fine as it asks for.
const grace = 2 * time.Minute

// Layout says which spans of time are kept at which coarseness. It never changes: all series of an SLO share one.
type Layout struct {
	levels []level // from fine to coarse
	span   time.Duration
}

// level is one width of slots, in minutes.
type level struct {
	width uint32
	until uint32 // what is older than this needs no such width
}

// NewLayout makes the layout for the rolling windows that will be asked for. The far edge of a window is known to a
// twelfth of it, of a week and more to a 24th, at best to the minute. What is not longer than 0 is no window; without
// any, minutes are kept.
func NewLayout(windows ...time.Duration) *Layout {
	windows = slices.DeleteFunc(slices.Clone(windows), func(w time.Duration) bool { return w <= 0 })
	slices.Sort(windows)
	if len(windows) == 0 {
		windows = []time.Duration{ladder[0]}
	}
	finest, longest := resolution(windows[0]), windows[len(windows)-1]
	l := &Layout{span: longest}
	for _, width := range ladder {
		if width < finest || width > resolution(longest) {
			continue
		}
		// Widths that no window asks for are steps on the way: without them a day would stay a thousand minutes until it is over.
		until := grace
		for _, w := range windows {
			if resolution(w) <= width {
				until = w + grace
			}
		}
		l.levels = append(l.levels, level{minutes(width), minutes(until)})
	}
	return l
}

// resolution is the widest slot that window w can do with.
func resolution(w time.Duration) time.Duration {
	parts := time.Duration(12)
	if w >= 7*day {
		parts = 24
	}
	widest := ladder[0]
	for _, step := range ladder {
		if step <= w/parts {
			widest = step
		}
	}
	return widest
}

// minutes is d in minutes, rounded up.
func minutes(d time.Duration) uint32 { return uint32((d-1)/time.Minute + 1) }

// Span is the longest window. What is older is forgotten, some minutes or a slot later.
func (l *Layout) Span() time.Duration { return l.span }

// Resolution is how coarse the far edge of window w is.
func (l *Layout) Resolution(w time.Duration) time.Duration {
	for _, v := range l.levels {
		if w+grace <= time.Duration(v.until)*time.Minute {
			return time.Duration(v.width) * time.Minute
		}
	}
	return time.Duration(l.levels[len(l.levels)-1].width) * time.Minute
}

// newest is the start of the slot of a minute that nothing is newer than.
func (l *Layout) newest(minute uint32) uint32 { return floor(minute, l.levels[0].width) }

// places finds slots, going back in time from the newest.
//
// A slot of a coarser width takes the place of finer ones once it lies wholly behind what the finer width is kept for.
// Widths nest and only ever grow as the newest time rises, so where a minute belongs depends on that time alone and not
// on how the ring came there.
type places struct {
	levels []level // that of the last answer, and all coarser ones
	newest int64
	gone   int64 // the coarsest slots that begin before this are forgotten
}

func (l *Layout) places(newest uint32) places {
	last := l.levels[len(l.levels)-1]
	return places{levels: l.levels, newest: int64(newest), gone: int64(newest) - int64(last.until) - int64(last.width)}
}

// slot is the start of the slot that holds minute. Minutes must not rise from call to call.
func (p *places) slot(minute uint32) uint32 {
	for len(p.levels) > 1 {
		wide, edge := p.levels[1].width, p.newest-int64(p.levels[0].until)
		if int64(minute) >= edge || int64(floor(minute, wide))+int64(wide) > edge {
			break
		}
		p.levels = p.levels[1:]
	}
	return floor(minute, p.levels[0].width)
}

// forgotten says that minute, and all before it, are older than any window asks for.
func (p *places) forgotten(minute uint32) bool {
	// Going by the coarsest slot, whatever the width at this age: all finer ones within it go together.
	width := p.levels[len(p.levels)-1].width
	return int64(minute) < p.gone+int64(width) && int64(floor(minute, width)) <= p.gone
}

func floor(minute, width uint32) uint32 { return minute - minute%width }
