// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"errors"
	"fmt"
	"math"

	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// maxTime is the last event time that a state may name: in the year 2116, and far enough from where times wrap around.
const maxTime = 1 << 62

// checkTimes looks whether times are such, or not set.
func checkTimes(times ...int64) error {
	for _, t := range times {
		if t != window.Unset && (t < 0 || t > maxTime) {
			return fmt.Errorf("%d is no event time", t)
		}
	}
	return nil
}

// checkNumbers looks whether numbers can be added to.
func checkNumbers(numbers ...float64) error {
	for _, n := range numbers {
		if math.IsNaN(n) || math.IsInf(n, 0) {
			return fmt.Errorf("%v is no number of events", n)
		}
	}
	return nil
}

// check looks whether a head can be gone on from.
func (h *Head) check() error {
	if err := checkTimes(h.LastData, h.Closed, h.LastEnd, h.Balanced); err != nil {
		return err
	}
	if h.Begun && (h.Closed == window.Unset || h.LastData == window.Unset || h.LastData > h.Closed) {
		return fmt.Errorf("it has begun, and closed %d, of which %d is the last with data", h.Closed, h.LastData)
	}
	if err := h.Tellers.check(); err != nil {
		return err
	}
	for _, c := range h.Classes {
		if c.Pane <= 0 || c.Pane > Tick {
			return fmt.Errorf("a pane of %s", c.Pane)
		}
		if !h.Begun {
			continue
		}
		if err := checkTimes(c.Next); err != nil {
			return err
		}
		if c.Next == window.Unset || window.Start(c.Next, c.Pane) != c.Next || c.Next+int64(c.Pane) <= h.Closed {
			return fmt.Errorf("panes of %s go on with %d, where those up to %d are closed", c.Pane, c.Next, h.Closed)
		}
	}
	for i := range h.Policies {
		for _, t := range h.Policies[i].Tallies {
			if err := checkTimes(t.Start, t.Newest, t.First); err != nil {
				return err
			}
			if t.Streak < 0 {
				return fmt.Errorf("%d windows in a row", t.Streak)
			}
		}
	}
	return nil
}

// check looks whether a series can be gone on from, with next the pane to close next, where one has been closed.
func (st *SeriesState) check(next int64) error {
	a := &st.Account
	err := errors.Join(
		checkTimes(st.PartAt, st.TotalAt, st.ToldAt, st.First, st.Newest, st.LastData, a.PeriodFrom, a.Heard, a.Begin, a.Filled),
		checkNumbers(st.Good, st.Total, st.Open[0], st.Open[1], st.Closed[0], st.Closed[1], st.Rate.Amount, a.Period.Good, a.Period.Total, a.Slice[0], a.Slice[1]),
	)
	for i := range st.Alerts {
		err = errors.Join(err, checkTimes(st.Alerts[i].Since))
	}
	for i := range st.Windows {
		w := &st.Windows[i]
		if w.Last.State < OK || w.Last.State > NoData {
			err = errors.Join(err, fmt.Errorf("a window has the state %d", w.Last.State))
		}
		err = errors.Join(err, checkTimes(w.Last.Start, w.Last.End), w.Sums.check())
	}
	if len(st.Panes) > 0 && st.Pane <= 0 {
		return errors.Join(err, fmt.Errorf("panes of %s", st.Pane))
	}
	before := window.Unset
	for i := range st.Panes {
		p := &st.Panes[i]
		if p.Start < 0 || p.Start > maxTime || p.Start <= before || p.Start < next || window.Start(p.Start, st.Pane) != p.Start {
			return errors.Join(err, fmt.Errorf("a pane of %s from %d on, after %d", st.Pane, p.Start, max(before, next)))
		}
		before = p.Start
		err = errors.Join(err, p.Sums.check())
	}
	return err
}

func (a *sumsState) check() error {
	if g := a.Good; g[0] > g[1] || g[1] > g[2] || g[2] > a.N {
		return fmt.Errorf("of %d events %v are good", a.N, g)
	}
	return errors.Join(checkTimes(a.First, a.Last, a.PartAt, a.TotalAt), checkNumbers(a.Expected, a.Amount, a.GoodSum, a.TotalSum))
}
