// SPDX-License-Identifier: Apache-2.0

package readmostly

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
)

func one() int { return 1 }

func TestAKeyIsMadeOnceAndFoundFromThenOn(t *testing.T) {
	m := New[string, int](10)
	_, ok := m.Get("a")
	assert.False(t, ok)
	made := 0
	for range 100 {
		v, ok := m.GetOrPut("a", func() int { made++; return 7 })
		assert.True(t, ok)
		assert.Equal(t, 7, v)
	}
	assert.Equal(t, 1, made)
	assert.Equal(t, 1, m.Len())
}

func TestAFullMapRefusesNewKeysAndKeepsTheOld(t *testing.T) {
	m := New[int, int](3)
	for i := range 10 {
		_, ok := m.GetOrPut(i, one)
		assert.Equal(t, i < 3, ok, i)
	}
	assert.Equal(t, 3, m.Len())
	_, ok := m.GetOrPut(2, one)
	assert.True(t, ok)
}

func TestWhatIsForgottenMakesRoom(t *testing.T) {
	m := New[int, int](4)
	for i := range 4 {
		m.GetOrPut(i, one)
	}
	assert.Equal(t, 2, m.Retain(func(k, _ int) bool { return k%2 == 0 }))
	assert.Equal(t, 0, m.Retain(func(int, int) bool { return true }))
	assert.Equal(t, 2, m.Len())
	_, ok := m.Get(1)
	assert.False(t, ok)
	_, ok = m.GetOrPut(9, one)
	assert.True(t, ok)
}

// Scenario: goroutines read and add the same keys while others are forgotten.
// Guarantees: a value is made once for each key, and nothing is lost (run with -race).
func TestManyGoroutinesSeeOneMap(t *testing.T) {
	m := New[string, *int](1000)
	var made atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 2000 {
				key := fmt.Sprint(i % 500)
				v, ok := m.GetOrPut(key, func() *int { made.Add(1); return new(int) })
				if !ok || v == nil {
					t.Error("lost", key)
				}
				m.Get(key)
			}
		})
	}
	wg.Go(func() {
		for range 20 {
			m.Retain(func(string, *int) bool { return true })
		}
	})
	wg.Wait()
	assert.Equal(t, 500, m.Len())
	assert.Equal(t, int64(500), made.Load())
}

func BenchmarkGet(b *testing.B) {
	m := New[string, int](10_000)
	for i := range 10_000 {
		m.GetOrPut(fmt.Sprint("metric_", i), one)
	}
	m.Retain(func(string, int) bool { return true })
	b.ReportAllocs()
	for b.Loop() {
		m.Get("metric_500")
	}
}
