// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// ErrNotLoaded is returned by Save before a Load that succeeded: it would not know which values must stay.
var ErrNotLoaded = errors.New("checkpoint: save before load")

// Store keeps generations of a state. Not safe for concurrent use.
type Store struct {
	client storage.Client
	prefix string

	loaded   bool
	sequence uint64           // the highest that was ever seen or tried
	slot     slot             // of the newest sound manifest; the next one goes to the other
	parts    map[string]entry // of the newest sound manifest: what it names is not written to
	stale    []string         // names of parts that may lie in the storage though that manifest does not name them
}

// Generation is a state as of one Save.
type Generation struct {
	// Sequence grows with every Save. It is 0 where there is nothing: never saved, or nothing sound left.
	Sequence uint64
	// Parts are the values by their names. They belong to the caller.
	Parts map[string][]byte
}

// New returns a store that keeps everything below prefix. The client stays the caller's, who closes it.
func New(client storage.Client, prefix string) *Store {
	return &Store{client: client, prefix: prefix}
}

// Load returns the newest sound generation; its Sequence is 0 where none was ever saved. A generation that is damaged
// is passed over and told in problems: which key, what is wrong with it, and what is done instead. err means that the
// storage itself failed.
func (s *Store) Load(ctx context.Context) (state Generation, problems []error, err error) {
	s.loaded, s.sequence, s.slot, s.parts, s.stale = false, 0, false, nil, nil
	found, damage, err := s.manifests(ctx)
	if err != nil {
		return Generation{}, nil, err
	}
	for _, m := range found {
		s.sequence = max(s.sequence, m.Sequence)
		if state.Sequence == 0 {
			values, broken, err := s.values(ctx, m)
			if err != nil {
				return Generation{}, nil, err
			}
			if broken == nil {
				state = Generation{Sequence: m.Sequence, Parts: values}
				s.slot, s.parts = m.at, m.Parts
				continue
			}
			damage = append(damage, fmt.Errorf("generation %d: %w", m.Sequence, broken))
		}
		for name := range m.Parts {
			s.stale = append(s.stale, name)
		}
	}
	instead := "nothing sound is left, so it starts empty"
	if state.Sequence > 0 {
		instead = fmt.Sprintf("generation %d is used", state.Sequence)
	}
	for _, d := range damage {
		problems = append(problems, fmt.Errorf("checkpoint: %w; %s", d, instead))
	}
	s.loaded = true
	return state, problems, nil
}

// found is a manifest that checks, and where it stands.
type found struct {
	manifest
	at slot
}

// manifests returns those that check, the newest first, and what is wrong with the others.
func (s *Store) manifests(ctx context.Context) (all []found, damage []error, err error) {
	var ops [2]*storage.Operation
	for i, at := range [...]slot{false, true} {
		ops[i] = storage.GetOperation(s.manifestKey(at))
	}
	if err := s.batch(ctx, ops[:]...); err != nil {
		return nil, nil, fmt.Errorf("checkpoint: read %s: %w", s.prefix, err)
	}
	for i, at := range [...]slot{false, true} {
		if ops[i].Value == nil {
			continue
		}
		m := found{at: at}
		if err := m.unmarshal(ops[i].Value); err != nil {
			damage = append(damage, fmt.Errorf("%s %w", ops[i].Key, err))
			continue
		}
		all = append(all, m)
	}
	if len(all) == 2 && all[1].Sequence > all[0].Sequence {
		all[0], all[1] = all[1], all[0]
	}
	return all, damage, nil
}

// values reads the parts of a generation. broken says what is wrong with the first one that does not check.
func (s *Store) values(ctx context.Context, m found) (values map[string][]byte, broken, err error) {
	names := make([]string, 0, len(m.Parts))
	ops := make([]*storage.Operation, 0, len(m.Parts))
	for name, e := range m.Parts {
		names = append(names, name)
		ops = append(ops, storage.GetOperation(s.partKey(name, e.Slot)))
	}
	if err := s.batch(ctx, ops...); err != nil {
		return nil, nil, fmt.Errorf("checkpoint: read %s: %w", s.prefix, err)
	}
	values = make(map[string][]byte, len(names))
	for i, name := range names {
		if err := m.Parts[name].check(ops[i].Value); err != nil {
			return nil, fmt.Errorf("%s %w", ops[i].Key, err), nil
		}
		values[name] = ops[i].Value
		if values[name] == nil { // some storages do not tell an empty value from none
			values[name] = []byte{}
		}
	}
	return values, nil, nil
}

// Save makes a new generation of the last one: parts in changed are written, those in removed go, unless they are in
// changed too, and all others stay as they are. After an error the last generation still stands; what was given has to
// be given again. The storage may keep the values for as long as the call lasts.
func (s *Store) Save(ctx context.Context, changed map[string][]byte, removed []string) error {
	if !s.loaded {
		return ErrNotLoaded
	}
	if len(changed) == 0 && len(removed) == 0 {
		return nil
	}
	s.sequence++
	next := manifest{Format: format, Sequence: s.sequence, Parts: maps.Clone(s.parts)}
	if next.Parts == nil {
		next.Parts = make(map[string]entry, len(changed))
	}
	for _, name := range removed {
		delete(next.Parts, name)
	}
	ops := make([]*storage.Operation, 0, len(changed)+2*len(s.stale)+1)
	for name, value := range changed {
		e := entryOf(!s.parts[name].Slot, value)
		next.Parts[name] = e
		ops = append(ops, storage.SetOperation(s.partKey(name, e.Slot), value))
	}
	for _, name := range s.stale {
		_, inLast := s.parts[name]
		if _, inNext := next.Parts[name]; !inLast && !inNext {
			ops = append(ops, storage.DeleteOperation(s.partKey(name, false)), storage.DeleteOperation(s.partKey(name, true)))
		}
	}
	value, err := next.marshal()
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	// All in one go, which a storage with transactions does as a whole or not at all. Another one may stop anywhere, and
	// in any order: the manifest checks only together with every value that it names.
	ops = append(ops, storage.SetOperation(s.manifestKey(!s.slot), value))
	if err := s.batch(ctx, ops...); err != nil {
		s.stale = appendAbsent(s.stale, next.Parts, s.parts)
		return fmt.Errorf("checkpoint: write %s: %w", s.prefix, err)
	}
	s.stale = appendAbsent(s.stale[:0], s.parts, next.Parts)
	s.slot, s.parts = !s.slot, next.Parts
	return nil
}

// appendAbsent appends the names in from that are not in other.
func appendAbsent(names []string, from, other map[string]entry) []string {
	for name := range from {
		if _, ok := other[name]; !ok {
			names = append(names, name)
		}
	}
	return names
}

func (s *Store) batch(ctx context.Context, ops ...*storage.Operation) error {
	return guard(func() error { return s.client.Batch(ctx, ops...) })
}

func (s *Store) manifestKey(at slot) string { return s.prefix + "/manifest/" + at.String() }

func (s *Store) partKey(name string, at slot) string {
	return s.prefix + "/part/" + name + "/" + at.String()
}
