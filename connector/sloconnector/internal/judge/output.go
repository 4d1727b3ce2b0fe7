// SPDX-License-Identifier: Apache-2.0

package judge

// Turn says which results are told although they have not changed: those whose turn it is, when all are told in Of turns.
type Turn struct {
	Of, Number uint64
}

// Changed tells no unchanged result, All tells every one.
var (
	Changed = Turn{}
	All     = Turn{Of: 1}
)

func (t Turn) has(phase uint64) bool { return t.Of > 0 && phase%t.Of == t.Number%t.Of }

// Turned notes that what has its turn is to be told.
func (j *Judge) Turned(turn Turn) {
	if turn.Of == 0 {
		return
	}
	j.Each(func(s *Series) {
		if turn.has(s.phase) {
			s.tell()
		}
	})
	for _, pol := range j.policies {
		for _, t := range pol.tallies {
			if turn.has(t.lead().phase) {
				t.changed(j.ledger)
			}
		}
	}
}

// Changes calls series and tally for what is to be told, for about as many as limit says, and reports whether there is more.
// All says that more than the events of a series is to be told.
func (j *Judge) Changes(limit int, series func(s *Series, all bool), tally func(*Tally)) (more bool) {
	l := j.ledger
	l.series = takeLast(l.series, limit, func(s *Series) {
		all := s.dirty
		if s.queued, s.dirty = false, false; !s.gone {
			series(s, all)
		}
	})
	l.tallies = takeLast(l.tallies, limit, func(t *Tally) {
		if t.dirty = false; !t.lead().gone {
			tally(t)
		}
	})
	return len(l.series)+len(l.tallies) > 0
}

// takeLast calls f for the last of a list, as many as limit says, and returns the others: what is gone must not be held.
func takeLast[T any](list []*T, limit int, f func(*T)) []*T {
	left := max(len(list)-limit, 0)
	for _, one := range list[left:] {
		f(one)
	}
	clear(list[left:])
	return list[:left]
}

// Retired is a series of which nothing more will be told, because its SLO or its group is gone or has other labels now.
type Retired struct {
	*Identity
	Policies []string // of which violations were told with its labels
	At       int64    // event time, after all that was told of it; 0 where it had no input
}

// maxRetired bounds those that wait to be told.
const maxRetired = 100_000

// retire notes that nothing more is told under the present labels of a series.
func (l *ledger) retire(s *Series) {
	if len(l.retired) >= maxRetired {
		return
	}
	r := Retired{Identity: s.Identity}
	if at := max(s.told.at, s.Result().End); at > 0 {
		r.At = at + tellAfter
	}
	for _, pol := range s.promise.watched {
		if t := pol.tallies[s.key]; t != nil && t.lead() == s {
			r.Policies = append(r.Policies, pol.spec.Name)
		}
	}
	l.retired = append(l.retired, r)
}

// TakeRetired returns what was retired since the last call.
func (j *Judge) TakeRetired() []Retired {
	retired := j.ledger.retired
	j.ledger.retired = nil
	return retired
}

// Unseen are the ids of the SLOs that are measured here and have had no input yet.
func (j *Judge) Unseen() (ids []string) {
	for _, p := range j.promises {
		if p.slo.Evaluated() && !p.seen {
			ids = append(ids, p.slo.ID)
		}
	}
	return ids
}
