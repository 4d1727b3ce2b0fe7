// SPDX-License-Identifier: Apache-2.0

// Package readmostly has a bounded map for what is looked up for every data point and seldom changes: reading it takes
// no lock and allocates nothing, from any number of goroutines.
package readmostly

import (
	"maps"
	"sync"
	"sync/atomic"
)

// Map is a map of at most a number of keys. sync.Map would do, but for the allocation that its untyped keys cost.
type Map[K comparable, V any] struct {
	limit int
	// ready is replaced as a whole and never written to.
	ready atomic.Pointer[map[K]V]
	// size is the number of keys in ready and fresh.
	size atomic.Int64
	// waiting says that fresh has keys, so that a reader knows when ready is all there is.
	waiting atomic.Bool

	mu     sync.Mutex
	fresh  map[K]V // keys that ready does not have yet
	misses int     // reads that had to take the lock since fresh was last joined to ready
}

// New returns a map that holds at most limit keys.
func New[K comparable, V any](limit int) *Map[K, V] {
	m := &Map[K, V]{limit: limit, fresh: map[K]V{}}
	m.ready.Store(&map[K]V{})
	return m
}

// Get returns the value of a key.
func (m *Map[K, V]) Get(key K) (V, bool) {
	if v, ok := (*m.ready.Load())[key]; ok || !m.waiting.Load() {
		return v, ok
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, ok := (*m.ready.Load())[key]; ok { // joined in between
		return v, ok
	}
	v, ok := m.fresh[key]
	m.misses++
	// Joining copies everything, so it waits until as many reads have paid for it.
	if m.misses > len(m.fresh)+int(m.size.Load())/8 {
		m.join()
	}
	return v, ok
}

// GetOrPut returns the value of a key, which create makes when the key is new. ok is false when the key is new and the
// map is full.
func (m *Map[K, V]) GetOrPut(key K, create func() V) (value V, ok bool) {
	if v, found := m.Get(key); found {
		return v, true
	}
	if m.Len() >= m.limit && !m.waiting.Load() {
		return value, false // without the lock: it may be full for long, and asked for every data point
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, found := (*m.ready.Load())[key]; found {
		return v, true
	}
	if v, found := m.fresh[key]; found {
		return v, true
	}
	if int(m.size.Load()) >= m.limit {
		return value, false
	}
	value = create()
	m.fresh[key] = value
	m.size.Add(1)
	m.waiting.Store(true)
	return value, true
}

// Len is the number of keys.
func (m *Map[K, V]) Len() int { return int(m.size.Load()) }

// Retain forgets the keys for which keep says no, and returns how many those were.
func (m *Map[K, V]) Retain(keep func(K, V) bool) (forgotten int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.join()
	kept := make(map[K]V, m.size.Load())
	for k, v := range *m.ready.Load() {
		if keep(k, v) {
			kept[k] = v
		}
	}
	forgotten = int(m.size.Load()) - len(kept)
	if forgotten > 0 {
		m.ready.Store(&kept)
		m.size.Store(int64(len(kept)))
	}
	return forgotten
}

// join moves fresh into ready. The caller holds the lock.
func (m *Map[K, V]) join() {
	m.misses = 0
	if len(m.fresh) == 0 {
		return
	}
	joined := make(map[K]V, m.size.Load())
	maps.Copy(joined, *m.ready.Load())
	maps.Copy(joined, m.fresh)
	m.ready.Store(&joined)
	m.fresh = map[K]V{}
	m.waiting.Store(false)
}
