// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// memory is a storage that can stop halfway: it knows no transactions.
type memory struct {
	values  map[string][]byte
	written map[string][]byte // the values as they were before anybody damaged them
	// does decides for every write of a Batch whether it happens; nil stands for all of them.
	does func() bool
	// fails is what the next calls answer.
	fails error
}

func newMemory() *memory { return &memory{values: map[string][]byte{}, written: map[string][]byte{}} }

func (m *memory) Get(ctx context.Context, key string) ([]byte, error) {
	op := storage.GetOperation(key)
	return op.Value, m.Batch(ctx, op)
}

func (m *memory) Set(ctx context.Context, key string, value []byte) error {
	return m.Batch(ctx, storage.SetOperation(key, value))
}

func (m *memory) Delete(ctx context.Context, key string) error {
	return m.Batch(ctx, storage.DeleteOperation(key))
}

func (m *memory) Close(context.Context) error { return nil }

func (m *memory) Batch(_ context.Context, ops ...*storage.Operation) error {
	for _, op := range ops {
		switch {
		case op.Type == storage.Get:
			op.Value = bytes.Clone(m.values[op.Key])
		case m.does != nil && !m.does():
		case op.Type == storage.Set:
			m.values[op.Key] = append([]byte{}, op.Value...)
			m.written[op.Key] = append([]byte{}, op.Value...)
		default:
			delete(m.values, op.Key)
		}
	}
	return m.fails
}

// opened is a store that is loaded without any problem.
func opened(t require.TestingT, client storage.Client) (*Store, Generation) {
	s := New(client, "test")
	state, problems, err := s.Load(context.Background())
	require.NoError(t, err)
	require.Empty(t, problems)
	return s, state
}

type parts = map[string][]byte

func TestAStateComesBackPartByPart(t *testing.T) {
	ctx, m := t.Context(), newMemory()
	s, state := opened(t, m)
	assert.Zero(t, state.Sequence, "nothing was ever saved")
	require.NoError(t, s.Save(ctx, parts{"x": []byte("1"), "y": []byte("1"), "empty": nil}, nil))
	require.NoError(t, s.Save(ctx, parts{"y": []byte("2"), "z": []byte("2")}, []string{"x"}))
	s, state = opened(t, m)
	assert.Equal(t, Generation{2, parts{"y": []byte("2"), "z": []byte("2"), "empty": {}}}, state)
	require.NoError(t, s.Save(ctx, parts{"y": []byte("3")}, []string{"never was", "y"}))
	_, state = opened(t, m)
	assert.Equal(t, Generation{3, parts{"y": []byte("3"), "z": []byte("2"), "empty": {}}}, state, "changed wins over removed")
}

func TestNothingIsSavedBeforeWhatStandsThereIsKnown(t *testing.T) {
	m := newMemory()
	s := New(m, "test")
	assert.ErrorIs(t, s.Save(t.Context(), parts{"x": nil}, nil), ErrNotLoaded)
	m.fails = errors.New("no such disk")
	_, _, err := s.Load(t.Context())
	assert.EqualError(t, err, "checkpoint: read test: no such disk")
	assert.ErrorIs(t, s.Save(t.Context(), parts{"x": nil}, nil), ErrNotLoaded)
}

func TestOnlyWhatChangedIsWritten(t *testing.T) {
	m := newMemory()
	s, _ := opened(t, m)
	require.NoError(t, s.Save(t.Context(), parts{"x": []byte("1"), "y": []byte("1")}, nil))
	writes := 0
	m.does = func() bool { writes++; return true }
	require.NoError(t, s.Save(t.Context(), parts{"x": []byte("2")}, nil))
	assert.Equal(t, 2, writes, "the part and the manifest")
	require.NoError(t, s.Save(t.Context(), nil, nil))
	assert.Equal(t, 2, writes)
}

func TestWhatIsRemovedLeavesNothingBehind(t *testing.T) {
	m := newMemory()
	s, _ := opened(t, m)
	for i := range 10 {
		name := fmt.Sprint(i)
		require.NoError(t, s.Save(t.Context(), parts{name: []byte(name)}, []string{fmt.Sprint(i - 1)}))
		if i%3 == 0 {
			s, _ = opened(t, m)
		}
	}
	require.NoError(t, s.Save(t.Context(), parts{"9": []byte("again")}, nil))
	assert.ElementsMatch(t, []string{"test/manifest/a", "test/manifest/b", "test/part/9/a", "test/part/9/b"}, slices.Collect(maps.Keys(m.values)))
}

func TestDamageIsToldWithKeyAndRemedy(t *testing.T) {
	f := func(damage func(m *memory), sequence uint64, want ...string) {
		t.Helper()
		m := newMemory()
		s, _ := opened(t, m)
		require.NoError(t, s.Save(t.Context(), parts{"x": []byte("one"), "y": []byte("one")}, nil))
		require.NoError(t, s.Save(t.Context(), parts{"x": []byte("two")}, nil))
		damage(m)
		state, problems, err := s.Load(t.Context())
		require.NoError(t, err)
		assert.Equal(t, sequence, state.Sequence)
		var told []string
		for _, p := range problems {
			told = append(told, p.Error())
		}
		assert.Equal(t, want, told)
		require.NoError(t, s.Save(t.Context(), parts{"x": []byte("three"), "y": []byte("three")}, nil))
		state, _, err = New(m, "test").Load(t.Context())
		require.NoError(t, err)
		assert.Equal(t, parts{"x": []byte("three"), "y": []byte("three")}, state.Parts, "it goes on from there")
	}
	f(func(*memory) {}, 2)
	f(func(m *memory) { m.values["test/part/x/a"] = []byte("twO") }, 1,
		"checkpoint: generation 2: test/part/x/a has checksum 72653d7d, want 52d8b3a3; generation 1 is used")
	f(func(m *memory) { delete(m.values, "test/part/x/a") }, 1,
		"checkpoint: generation 2: test/part/x/a is missing; generation 1 is used")
	f(func(m *memory) { m.values["test/manifest/a"] = nil }, 1)
	f(func(m *memory) { m.values["test/manifest/a"] = []byte{} }, 1,
		"checkpoint: test/manifest/a is 0 bytes long, which is no manifest; generation 1 is used")
	f(func(m *memory) { m.values["test/part/y/b"] = []byte("on") }, 0,
		"checkpoint: generation 2: test/part/y/b is 2 bytes long, want 3; nothing sound is left, so it starts empty",
		"checkpoint: generation 1: test/part/y/b is 2 bytes long, want 3; nothing sound is left, so it starts empty")
}
