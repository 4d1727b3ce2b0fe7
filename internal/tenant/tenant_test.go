// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-llm/otelcol-llm/internal/attrs/attrstest"
)

func resolver(t testing.TB, keys ...string) *Resolver {
	r, err := NewResolver(keys)
	require.NoError(t, err)
	return r
}

func mapOf(t testing.TB, raw map[string]any) pcommon.Map {
	m := pcommon.NewMap()
	require.NoError(t, m.FromRaw(raw))
	return m
}

var none = pcommon.NewMap()

func TestTheFirstTrustedAttributeDecides(t *testing.T) {
	r := resolver(t, DefaultKeys()...)
	f := func(resource map[string]any, want string) {
		t.Helper()
		m := mapOf(t, resource)
		assert.Equal(t, want, r.Of(none, none, m))
		name, known := r.OfResource(m)
		assert.Equal(t, want, name)
		assert.True(t, known)
	}
	f(nil, "")
	f(map[string]any{"host.name": "a"}, "")
	f(map[string]any{"service.name": "chat"}, "chat")
	f(map[string]any{"service.name": "chat", "service.namespace": "shop"}, "shop")
	f(map[string]any{"service.name": "chat", "service.namespace": "shop", "k8s.namespace.name": "team-a"}, "team-a")
	f(map[string]any{"service.name": "chat", "k8s.namespace.name": ""}, "chat")
	f(map[string]any{"k8s.namespace.name": 42}, "42")
	f(map[string]any{"k8s.namespace.name": "a/b"}, "a/b")
}

func TestWhatAnEarlierHopResolvedStays(t *testing.T) {
	r := resolver(t, "point:customer.id", "k8s.namespace.name")
	resource := mapOf(t, map[string]any{"tenant": "a", "k8s.namespace.name": "b"})
	assert.Equal(t, "a", r.Of(mapOf(t, map[string]any{"customer.id": "c"}), none, resource))
	name, known := r.OfResource(resource)
	assert.Equal(t, "a", name)
	assert.True(t, known)
}

// Guarantees: a client that writes attributes on its points cannot choose a tenant.
func TestAPointChoosesNoTenant(t *testing.T) {
	r := resolver(t, DefaultKeys()...)
	claimed := mapOf(t, map[string]any{"tenant": "other", "k8s.namespace.name": "other", "service.name": "other"})
	assert.Empty(t, r.Of(claimed, claimed, none))
	assert.Equal(t, "chat", r.Of(claimed, claimed, mapOf(t, map[string]any{"service.name": "chat"})))
}

// Guarantees: who writes a key more than once is taken at the first word, whoever asks.
func TestOfAKeyThatStandsThereMoreThanOnceTheFirstCounts(t *testing.T) {
	r := resolver(t, "point:customer.id", "service.name")
	for _, resource := range []pcommon.Map{
		attrstest.Map("tenant", "a", "tenant", "b", "service.name", "c"), attrstest.Map("tenant", "", "tenant", "b", "service.name", "a", "service.name", "c"),
	} {
		assert.Equal(t, "a", r.Of(none, none, resource))
	}
	assert.Equal(t, "a", r.Of(attrstest.Map("customer.id", "a", "customer.id", "b"), none, none))
}

func TestAPointIsAskedWhereAKeySaysSo(t *testing.T) {
	r := resolver(t, "point:customer.id", "service.name")
	resource := mapOf(t, map[string]any{"service.name": "chat"})
	customer := mapOf(t, map[string]any{"customer.id": "c"})
	assert.Equal(t, "c", r.Of(customer, none, resource))
	assert.Equal(t, "c", r.Of(none, customer, resource))
	assert.Equal(t, "chat", r.Of(none, none, resource))
	_, known := r.OfResource(resource)
	assert.False(t, known)
	assert.Equal(t, "c", r.Of(none, none, mapOf(t, map[string]any{"service.name": "chat", "customer.id": "c"})), "it may stand on the resource, too")
	assert.Equal(t, []string{"tenant", "customer.id", "service.name"}, r.Keys())
}

func TestKeysThatNameNothingAreRefused(t *testing.T) {
	f := func(want string, keys ...string) {
		t.Helper()
		_, err := NewResolver(keys)
		assert.EqualError(t, err, want)
	}
	f("must name an attribute, e.g. k8s.namespace.name")
	f(`[0]: "" is no attribute key`, "")
	f(`[1]: " a" is no attribute key`, "a", " a")
	f(`[0]: "point:" is no attribute key`, "point:")
	f(`[1]: "a" stands there twice`, "a", "a")
}

func TestValidNamesAreThoseThatBackendsTake(t *testing.T) {
	f := func(name string, want bool) {
		t.Helper()
		assert.Equal(t, want, Valid(name), name)
	}
	f("team-a", true)
	f("Team_A.1!*'()", true)
	f("...", true)
	f(strings.Repeat("a", 150), true)
	f(strings.Repeat("a", 151), false)
	f("", false)
	f(".", false)
	f("..", false)
	f("a/b", false)
	f("a|b", false)
	f("a b", false)
	f("é", false)
	f("a\x00", false)
}

func BenchmarkOf(b *testing.B) {
	r := resolver(b, DefaultKeys()...)
	resource := mapOf(b, map[string]any{"host.name": "h", "service.name": "chat", "k8s.pod.name": "p", "cloud.region": "eu"})
	b.ReportAllocs()
	for b.Loop() {
		if name := r.Of(none, none, resource); name != "chat" || !Valid(name) {
			b.Fatal(name)
		}
	}
}

func TestResolvingAllocatesNothing(t *testing.T) {
	r := resolver(t, "point:customer.id", "service.name")
	resource := mapOf(t, map[string]any{"service.name": "chat"})
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		r.Of(none, none, resource)
		r.OfResource(resource)
		Valid("chat")
	}))
}
