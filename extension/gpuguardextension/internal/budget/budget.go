// SPDX-License-Identifier: Apache-2.0

// Package budget bounds how much is done: so many actions an hour, and a time after each in which nothing is. It outlives a
// restart, so that a crash loop does not begin it anew. It is not safe for concurrent use.
package budget

import (
	"slices"
	"time"
)

// Span is what a budget is for.
const Span = time.Hour

// Options are the settings of a Budget.
type Options struct {
	// MaxPerHour is how many actions there may be within any hour.
	MaxPerHour int
	// Cooldown is how long nothing is done after an action has ended.
	Cooldown time.Duration
}

// Budget is what was done lately. Times are Unix nanoseconds.
type Budget struct {
	Options
	spent []int64 // in order
	ended int64   // when the last action was over
}

// New returns one of which nothing is spent.
func New(o Options) *Budget { return &Budget{Options: o} }

// Restore takes up what was spent before.
func (b *Budget) Restore(spent []int64, ended int64) {
	b.spent, b.ended = slices.Clone(spent), ended
	slices.Sort(b.spent)
}

// State is what Restore takes.
func (b *Budget) State() (spent []int64, ended int64) { return slices.Clone(b.spent), b.ended }

// Exhaust spends what is left.
func (b *Budget) Exhaust(now int64) {
	for range b.Left(now) {
		b.spent = append(b.spent, now)
	}
	b.ended = now
}

// Left is how many actions there may be now.
func (b *Budget) Left(now int64) int {
	b.trim(now)
	return max(b.MaxPerHour-len(b.spent), 0)
}

// Cool is when the time after the last action is over; 0: there was none.
func (b *Budget) Cool(now int64) int64 {
	b.trim(now)
	last := b.ended
	if n := len(b.spent); n > 0 {
		last = max(last, b.spent[n-1])
	}
	if last == 0 {
		return 0
	}
	return last + int64(b.Cooldown)
}

// Next is when something is left again, if nothing is now.
func (b *Budget) Next(now int64) int64 {
	b.trim(now)
	if b.MaxPerHour < 1 || len(b.spent) < b.MaxPerHour {
		return now
	}
	return b.spent[len(b.spent)-b.MaxPerHour] + int64(Span)
}

// Spend takes one, and says whether there was one.
func (b *Budget) Spend(now int64) bool {
	if now < b.Cool(now) || b.Left(now) == 0 {
		return false
	}
	b.spent = append(b.spent, now)
	return true
}

// Return gives back what was spent last: nothing was done with it.
func (b *Budget) Return() {
	if n := len(b.spent); n > 0 {
		b.spent = b.spent[:n-1]
	}
}

// Ended begins the time in which nothing is done.
func (b *Budget) Ended(now int64) { b.ended = max(b.ended, now) }

// trim forgets what is an hour ago. What is ahead of the clock, which was set back, is taken to be of now: nothing of it is
// forgiven, and it does not last for ever.
func (b *Budget) trim(now int64) {
	b.spent = slices.DeleteFunc(b.spent, func(at int64) bool { return at <= now-int64(Span) })
	for i := range b.spent {
		b.spent[i] = min(b.spent[i], now)
	}
	b.ended = min(b.ended, now)
}
