// SPDX-License-Identifier: Apache-2.0

package attrs

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-llm/otelcol-llm/internal/attrs/attrstest"
)

func mapOf(t testing.TB, raw map[string]any) pcommon.Map {
	m := pcommon.NewMap()
	require.NoError(t, m.FromRaw(raw))
	return m
}

func TestLookupTakesThePointBeforeTheScopeBeforeTheResource(t *testing.T) {
	point, scope, resource := pcommon.NewMap(), pcommon.NewMap(), pcommon.NewMap()
	f := func(want string) {
		t.Helper()
		v, ok := Lookup("k", point, scope, resource)
		assert.Equal(t, want != "", ok)
		if ok {
			assert.Equal(t, want, v.Str())
		}
	}
	f("")
	resource.PutStr("k", "resource")
	f("resource")
	scope.PutStr("k", "scope")
	f("scope")
	point.PutStr("k", "point")
	f("point")
}

// Guarantees: a client that writes a key more than once has said what the first copy says, and whoever decides leaves one only.
func TestOfAKeyThatStandsThereMoreThanOnceTheFirstCounts(t *testing.T) {
	f := func(change func(pcommon.Map), want []string, pairs ...string) {
		t.Helper()
		m := attrstest.Map(pairs...)
		change(m)
		assert.Equal(t, want, attrstest.Pairs(m))
	}
	twice := []string{"a", "1", "k", "x", "b", "2", "k", "y", "k", "x"}
	v, ok := Lookup("k", pcommon.NewMap(), attrstest.Map(twice...), pcommon.NewMap())
	require.True(t, ok)
	assert.Equal(t, "x", v.Str())
	set := func(value string) func(pcommon.Map) { return func(m pcommon.Map) { Set(m, "k", value) } }
	f(set("x"), []string{"a", "1", "k", "x", "b", "2"}, twice...)
	f(set("z"), []string{"a", "1", "k", "z", "b", "2"}, twice...)
	f(set("z"), []string{"a", "1", "k", "z"}, "a", "1")
	f(set("z"), []string{"k", "z"}, "k", "")
	remove := func(m pcommon.Map) { Remove(m, "k") }
	f(remove, []string{"a", "1", "b", "2"}, twice...)
	f(remove, []string{"a", "1"}, "a", "1")
	f(remove, nil, "k", "x", "k", "x")
	assert.Equal(t, Hash(attrstest.Map("a", "1", "b", "2")), HashWithout(attrstest.Map(twice...), []string{"k"}))

	m := pcommon.NewMap()
	m.PutInt("k", 1)
	Set(m, "k", "1")
	assert.Equal(t, map[string]any{"k": "1"}, m.AsRaw())
}

func TestSettingWhatIsThereAllocatesNothing(t *testing.T) {
	m := attrstest.Map("a", "1", "k", "x", "b", "2")
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		Set(m, "k", "x")
		Remove(m, "none")
	}))
}

func TestHashDoesNotDependOnOrder(t *testing.T) {
	a, b := pcommon.NewMap(), pcommon.NewMap()
	a.PutStr("x", "1")
	a.PutInt("y", 2)
	b.PutInt("y", 2)
	b.PutStr("x", "1")
	assert.Equal(t, Hash(a), Hash(b))
}

func TestHashWithoutIsTheHashOfTheRest(t *testing.T) {
	all := mapOf(t, map[string]any{"a": "1", "b": 2, "c": []any{"x"}})
	assert.Equal(t, Hash(mapOf(t, map[string]any{"b": 2})), HashWithout(all, []string{"a", "c", "none"}))
	assert.Equal(t, Hash(all), HashWithout(all, nil))
}

func TestHashTellsApart(t *testing.T) {
	seen := map[uint64]any{}
	for _, raw := range []map[string]any{
		{}, {"a": "b"}, {"b": "a"}, {"a": ""}, {"a": "1"}, {"a": 1}, {"a": 1.0}, {"a": true}, {"a": false}, {"a": nil},
		{"a": []any{"b", "c"}}, {"a": []any{"c", "b"}}, {"a": []byte("b")}, {"a": map[string]any{"b": "c"}},
		{"a": "b", "b": "a"}, {"a": "a", "b": "b"}, {"ab": "c"}, {"a": "bc"}, {"a": "x", "b": "x"}, {"a": "y", "b": "y"},
	} {
		h := Hash(mapOf(t, raw))
		assert.NotContains(t, seen, h, "%v and %v", raw, seen[h])
		seen[h] = raw
	}
}

func TestCombineKeepsTheOrder(t *testing.T) {
	assert.NotEqual(t, Combine(1, 2), Combine(2, 1))
	assert.NotEqual(t, Combine(0), Combine(0, 0))
}

// Guarantees: a checkpoint written by one process is understood by the next.
func TestHashIsStableAcrossProcesses(t *testing.T) {
	assert.Equal(t, uint64(0x10ac9ac602343233), Combine(Hash(mapOf(t, map[string]any{"service.name": "chat", "port": 8000})), String("m")))
}

func BenchmarkHash(b *testing.B) {
	m := pcommon.NewMap()
	for i := range 6 {
		m.PutStr(fmt.Sprintf("attribute.number.%d", i), "some-value")
	}
	b.ReportAllocs()
	for b.Loop() {
		Hash(m)
	}
}
