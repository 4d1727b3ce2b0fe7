// SPDX-License-Identifier: Apache-2.0

package delta

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// MaxRemembered bounds the points that a Once remembers: ten minutes of a point every ten seconds, an hour of one every
// minute. A client gives up on a request earlier (OTLP exporters retry for five minutes by default).
const MaxRemembered = 64

// Once remembers the delta points of a series, so that one that is sent again is found: a client whose request was
// accepted in part sends all of it again. The zero value is ready.
type Once struct {
	points []span // by time, the oldest first
}

// span is the time that a delta point is for.
type span struct{ start, at int64 }

func (a span) compare(b span) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.start, b.start))
}

// Seen reports whether the point (start, at) was there before and remembers it. Points before closed are forgotten, as
// they are late anyway; of more than MaxRemembered the oldest are.
func (o *Once) Seen(start, at, closed int64) bool {
	o.forget(closed)
	p := span{start, at}
	i, seen := slices.BinarySearchFunc(o.points, p, span.compare)
	switch {
	case seen:
		return true
	case at < closed:
	case len(o.points) < MaxRemembered:
		o.points = slices.Insert(o.points, i, p)
	case i > 0: // full: the oldest makes room
		copy(o.points, o.points[1:i])
		o.points[i-1] = p
	}
	return false
}

// Forgotten reports whether it is not known any more whether there was a point of a time: as many as are remembered are newer.
func (o *Once) Forgotten(at int64) bool { return len(o.points) == MaxRemembered && at < o.points[0].at }

func (o *Once) forget(closed int64) {
	n := 0
	for n < len(o.points) && o.points[n].at < closed {
		n++
	}
	if n > 0 {
		o.points = o.points[:copy(o.points, o.points[n:])]
	}
}

// Len is the number of points that are remembered.
func (o *Once) Len() int { return len(o.points) }

// OnceState is a Once as plain values, for a checkpoint: for every point how far its start and then its time are from the
// time of the one before. A series without gaps has a zero for every start, which makes it small.
type OnceState []int64

// State returns the points as plain values, nil when there is none.
func (o *Once) State() OnceState {
	if len(o.points) == 0 {
		return nil
	}
	s, last := make(OnceState, 0, 2*len(o.points)), int64(0)
	for _, p := range o.points {
		s = append(s, p.start-last, p.at-last) // may wrap, and back again
		last = p.at
	}
	return s
}

// Restore makes o what State was taken of. After an error it remembers nothing.
func (o *Once) Restore(s OnceState) error {
	*o = Once{}
	if len(s) == 0 {
		return nil
	}
	if len(s)%2 != 0 || len(s) > 2*MaxRemembered {
		return fmt.Errorf("%d times are no pairs, or more than %d of them", len(s), MaxRemembered)
	}
	points, last := make([]span, 0, len(s)/2), int64(0)
	for i := 0; i < len(s); i += 2 {
		p := span{s[i] + last, s[i+1] + last}
		if n := len(points); n > 0 && points[n-1].compare(p) >= 0 {
			return errors.New("the points are not in the order of time")
		}
		points, last = append(points, p), p.at
	}
	o.points = points
	return nil
}
