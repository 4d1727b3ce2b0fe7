// SPDX-License-Identifier: Apache-2.0

package alertmanager

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/common/model"
)

const (
	// retention is for how long a resolved alert is repeated, as in Prometheus, and how long a refused one is not.
	retention = 15 * time.Minute
	// patience is for how long a resolved alert waits for an Alertmanager that does not take it.
	patience = 24 * time.Hour
)

// store knows which alerts there are, and what each Alertmanager has of them. It has no clock and does no I/O, and its
// methods may be called at once.
type store struct {
	endpoints, max int

	mu         sync.Mutex
	generation uint64
	alerts     map[uint64]*entry // by the signature of the labels, as in Alertmanager
	firing     int
	leftOut    int
}

// entry is an alert, firing until it has an end.
type entry struct {
	Alert
	listed     uint64    // the generation in which it was listed last
	version    uint64    // changes when it begins or ends
	resolved   time.Time // when the end was heard of; EndsAt is event time and may lie long before
	deliveries []delivery
}

func (e *entry) firing() bool { return e.EndsAt.IsZero() }

// delivery is what one Alertmanager has of an alert.
type delivery struct {
	pending bool      // to be sent
	taken   bool      // it has been sent since it began or ended
	refused time.Time // when it was refused as it is; zero is never
}

// item is an alert on its way, in the version that is sent.
type item struct {
	Alert
	key, version uint64
}

func newStore(endpoints, limit int) *store {
	return &store{endpoints: endpoints, max: limit, alerts: map[uint64]*entry{}}
}

// set replaces what fires. It returns how many alerts there is no room for, and whether this is new.
func (s *store) set(now time.Time, alerts []Alert) (leftOut int, began bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generation++
	s.expire(now, false)
	for _, a := range alerts {
		if !s.put(now, a) {
			leftOut++
		}
	}
	for _, e := range s.alerts {
		if e.firing() && e.listed != s.generation {
			s.end(e, now, now)
		}
	}
	began = leftOut > 0 && s.leftOut == 0
	s.leftOut = leftOut
	return leftOut, began
}

// put says whether there is room for an alert.
func (s *store) put(now time.Time, a Alert) bool {
	if a.StartsAt.IsZero() {
		a.StartsAt = now
	}
	key := model.LabelsToSignature(a.Labels)
	e := s.alerts[key]
	switch ended := !a.EndsAt.IsZero(); {
	case e == nil:
		if len(s.alerts) >= s.max {
			s.expire(now, true)
		}
		if len(s.alerts) >= s.max {
			return ended // one that has ended needs no room: it ends in Alertmanager too when it is not repeated
		}
		at := a.EndsAt
		a.EndsAt = time.Time{}
		e = &entry{Alert: a, deliveries: make([]delivery, s.endpoints)}
		s.alerts[key] = e
		s.firing++
		s.news(e)
		if ended {
			s.end(e, now, at)
		}
	case ended && e.firing() && e.listed == s.generation: // listed twice, and it fires
		return true
	case ended && e.firing():
		s.end(e, now, a.EndsAt)
	case ended:
	case e.firing():
		e.Alert = a
	default:
		e.Alert = a
		s.firing++
		s.news(e)
	}
	e.listed = s.generation
	return true
}

// end notes an end, which Alertmanager wants neither in the future, when it would be none, nor before the start.
func (s *store) end(e *entry, now, at time.Time) {
	if at.After(now) {
		at = now
	}
	if at.Before(e.StartsAt) {
		at = e.StartsAt
	}
	e.EndsAt, e.resolved = at, now
	s.firing--
	s.news(e)
}

// news is for every Alertmanager.
func (s *store) news(e *entry) {
	e.version++
	for i := range e.deliveries {
		e.deliveries[i] = delivery{pending: true}
	}
}

// expire forgets resolved alerts: those that have been repeated long enough, or, when room is needed, all that were taken.
func (s *store) expire(now time.Time, roomNeeded bool) {
	maps.DeleteFunc(s.alerts, func(_ uint64, e *entry) bool {
		if e.firing() {
			return false
		}
		age := now.Sub(e.resolved)
		owed := slices.ContainsFunc(e.deliveries, func(d delivery) bool { return !d.taken && d.refused.IsZero() })
		return age >= patience || !owed && (roomNeeded || age >= retention)
	})
}

// repeat makes everything due again for an Alertmanager, except what it has just refused.
func (s *store) repeat(now time.Time, endpoint int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(now, false)
	for _, e := range s.alerts {
		d := &e.deliveries[endpoint]
		d.pending = d.pending || d.refused.IsZero() || now.Sub(d.refused) >= retention
	}
}

// due returns what an Alertmanager is to be sent, news first.
func (s *store) due(endpoint int) []item {
	s.mu.Lock()
	defer s.mu.Unlock()
	var items []item
	for key, e := range s.alerts {
		if e.deliveries[endpoint].pending {
			items = append(items, item{Alert: e.Alert, key: key, version: e.version})
		}
	}
	old := func(it item) int {
		if s.alerts[it.key].deliveries[endpoint].taken {
			return 1
		}
		return 0
	}
	slices.SortFunc(items, func(a, b item) int {
		return cmp.Or(cmp.Compare(old(a), old(b)), a.StartsAt.Compare(b.StartsAt), cmp.Compare(a.key, b.key))
	})
	return items
}

// current drops the items whose alerts have changed since: they are news of their own.
func (s *store) current(items []item) []item {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(items, func(it item) bool {
		e := s.alerts[it.key]
		return e == nil || e.version != it.version
	})
}

// taken notes that an Alertmanager has accepted alerts.
func (s *store) taken(endpoint int, items []item) {
	s.answered(items, endpoint, delivery{taken: true})
}

// refused notes that an Alertmanager does not want an alert, and says whether this is new.
func (s *store) refused(now time.Time, endpoint int, it item) bool {
	was := s.answered([]item{it}, endpoint, delivery{refused: now})
	return len(was) == 1 && was[0].refused.IsZero()
}

// answered sets the delivery of the items which have not changed since, and returns what they were.
func (s *store) answered(items []item, endpoint int, d delivery) (was []delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range items {
		if e := s.alerts[it.key]; e != nil && e.version == it.version {
			was = append(was, e.deliveries[endpoint])
			e.deliveries[endpoint] = d
		}
	}
	return was
}

// sizes returns how many alerts fire, and for how many more there is no room.
func (s *store) sizes() (firing, leftOut int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.firing, s.leftOut
}
