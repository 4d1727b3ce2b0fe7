// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// tellers are the parts of which the input is: judges that each hear a share of it and tell what they have heard. Each says,
// too, up to when that was all, so that one that is dead is not taken for one that had nothing to tell. What closes without all
// that a known one has heard is incomplete.
type tellers struct {
	all    map[string]*teller
	broken int64   // end of the youngest time of which not all was told, window.Unset for none
	share  float64 // of the tellers that had told all of what closes now
	news   []TellerNews
}

type teller struct {
	reached int64 // event time up to which it has told all
	missed  bool  // something closed without it since
}

// TellerNews is what has become of a part.
type TellerNews struct {
	Name string
	What TellerChange
	At   int64 // event time
}

// TellerChange is how a part has changed.
type TellerChange int

// The changes of a part.
const (
	TellerMissed    TellerChange = iota // windows are judged without it
	TellerBack                          // and are not any more
	TellerForgotten                     // it is not waited for any more
)

// maxTellerNews bounds what waits to be taken.
const maxTellerNews = 1000

func newTellers() tellers { return tellers{all: map[string]*teller{}, broken: window.Unset, share: 1} }

func (t *tellers) tell(n TellerNews) {
	if len(t.news) < maxTellerNews {
		t.news = append(t.news, n)
	}
}

// Told notes that a part has told all that it has heard of [start, end), in event time. It reports false where there is no room
// for another part, which is then not waited for.
func (j *Judge) Told(name string, start, end int64) bool {
	all := &j.ledger.tellers
	t := all.all[name]
	switch {
	case t == nil && len(all.all) >= j.opts.MaxParts:
		return false
	case t == nil:
		if j.begun && len(all.all) > 0 {
			// What it takes over from others begins with a baseline, so some of it is counted by nobody.
			all.broken = max(all.broken, end)
		}
		all.all[strings.Clone(name)] = &teller{reached: end}
	case end <= t.reached: // again
	default:
		if start > t.reached || t.missed {
			all.broken = max(all.broken, end) // what it tells of that time is late, or lost
		}
		t.reached = end
		if t.missed && (!j.begun || end >= j.closed) {
			t.missed = false
			all.tell(TellerNews{name, TellerBack, end})
		}
	}
	return true
}

// Parts is the number of known parts.
func (j *Judge) Parts() int { return len(j.ledger.tellers.all) }

// TakeTellerNews returns what has become of parts since the last call.
func (j *Judge) TakeTellerNews() []TellerNews {
	news := j.ledger.tellers.news
	j.ledger.tellers.news = nil
	return news
}

// close notes who has not told all up to end, a full Tick, when that closes, and forgets who has been away for longer than ttl.
func (t *tellers) close(end int64, ttl time.Duration) {
	t.share = 1
	if len(t.all) == 0 || end%int64(Tick) != 0 {
		return
	}
	behind, from := 0, len(t.news)
	for name, of := range t.all {
		switch {
		case of.reached >= end:
		case end-of.reached > int64(ttl):
			delete(t.all, name)
			t.tell(TellerNews{name, TellerForgotten, end})
		default:
			behind++
			if !of.missed {
				of.missed = true
				t.tell(TellerNews{name, TellerMissed, end})
			}
		}
	}
	slices.SortFunc(t.news[from:], func(a, b TellerNews) int { return strings.Compare(a.Name, b.Name) })
	if behind > 0 {
		t.broken = max(t.broken, end)
		t.share = float64(len(t.all)-behind) / float64(len(t.all))
	}
}

// incomplete reports whether not all was told of a window that closes now and began at start.
func (t *tellers) incomplete(start int64) bool { return start < t.broken }

// incomplete takes from a verdict what cannot be proven without what was not told: it could have been good or bad.
func (r *Result) incomplete(threshold bool) {
	r.Incomplete = true
	if r.State == NoData {
		return
	}
	r.State = AtRisk
	r.GoodLower, r.GoodUpper = 0, 1
	if r.Lower, r.Upper = 0, 1; threshold {
		r.Lower, r.Upper = math.Inf(-1), math.Inf(1)
	}
}

// TellersState are the known parts.
type TellersState struct {
	_      struct{} `cbor:",toarray"`
	Broken int64
	All    []TellerState
}

// TellerState is one part.
type TellerState struct {
	_       struct{} `cbor:",toarray"`
	Name    string
	Reached int64
	Missed  bool
}

func (t *tellers) state() TellersState {
	st := TellersState{Broken: t.broken}
	for name, of := range t.all {
		st.All = append(st.All, TellerState{Name: name, Reached: of.reached, Missed: of.missed})
	}
	slices.SortFunc(st.All, func(a, b TellerState) int { return cmp.Compare(a.Name, b.Name) })
	return st
}

// check looks whether a state can be gone on from.
func (st *TellersState) check() error {
	err := checkTimes(st.Broken)
	names := map[string]bool{}
	for i := range st.All {
		of := &st.All[i]
		err = errors.Join(err, checkTimes(of.Reached))
		if names[of.Name] {
			err = errors.Join(err, fmt.Errorf("part %q stands twice", of.Name))
		}
		names[of.Name] = true
	}
	return err
}

// restore takes up a state. Beyond a limit that is lower than before, parts are left.
func (t *tellers) restore(st *TellersState, limit int) {
	t.broken = st.Broken
	for _, of := range st.All {
		if len(t.all) < limit {
			t.all[of.Name] = &teller{reached: of.Reached, missed: of.Missed}
		}
	}
}
