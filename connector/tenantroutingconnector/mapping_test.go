// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-llm/otelcol-llm/internal/tenant"
)

func TestTheTableComesFirstAndTheTemplateIsForTheOthers(t *testing.T) {
	f := func(template, name, want string) {
		t.Helper()
		m := newMapping(template, 10)
		m.table.Store(&map[string]string{"shop-prod": "shop", "a/b": "ab"})
		for range 2 { // the second time it is remembered
			assert.Equal(t, want, m.id(name))
		}
	}
	f("{tenant}", "team", "team")
	f("{tenant}", "shop-prod", "shop")
	f("{tenant}", "a/b", "ab")
	f("eu-{tenant}.prod", "team", "eu-team.prod")
	f("eu-{tenant}", "shop-prod", "shop")
	f("eu-{tenant}", "", "")
	f("", "team", "")
	f("", "shop-prod", "shop")
}

func TestNamesThatTheTemplateMadeIdsOfAreBounded(t *testing.T) {
	m := newMapping("x-{tenant}", 3)
	for _, name := range strings.Split("abcdefgh", "") {
		assert.Equal(t, "x-"+name, m.id(name))
	}
	assert.Equal(t, 3, m.made.Len())
}

// A client may make names up, as long and as many as it likes.
func TestNamesThatMakeNoIDsAreNotRemembered(t *testing.T) {
	m := newMapping("x-{tenant}", 10)
	for _, name := range []string{"a b", "ä", "a/b", strings.Repeat("a", 149), strings.Repeat("a", 1<<20)} {
		assert.Empty(t, m.id(name))
	}
	assert.Zero(t, m.made.Len())
	assert.Equal(t, "x-..", m.id(".."), "the id counts, not the name")
	assert.Equal(t, "x-"+strings.Repeat("a", 148), m.id(strings.Repeat("a", 148)))
}

func TestMappingAllocatesNothing(t *testing.T) {
	m := newMapping("x-{tenant}", 3)
	m.id("team")
	m.id("team")
	assert.Zero(t, testing.AllocsPerRun(100, func() { m.id("team") }))
}

func TestATableIsReadWithEveryProblemAtItsLine(t *testing.T) {
	f := func(text string, want map[string]string, problems ...string) {
		t.Helper()
		table, err := parseTable("t.yaml", []byte(text))
		if len(problems) == 0 {
			require.NoError(t, err)
			assert.Equal(t, want, table)
			return
		}
		assert.EqualError(t, err, strings.Join(problems, "\n"))
	}
	f("a: b\n'a/b': c # why\n7: d\n", map[string]string{"a": "b", "a/b": "c", "7": "d"})
	f("{}", map[string]string{})
	f("", nil, "t.yaml: is empty: write {} when no name is to be mapped")
	f("- a", nil, "t.yaml:1: is no map of names to tenant ids, such as `shop-prod: shop`")
	f("a: b\n---\nc: d", nil, "t.yaml: has more than one document, want one map of names to tenant ids")
	f("a: b\na: c\nd: e/f\ng: [h]\n? [i]\n: j\n", nil,
		"t.yaml:2: a stands twice",
		`t.yaml:3: d: "e/f" is no tenant id: at most 150 of a-z A-Z 0-9 !-_.*'(), and not . or .. alone`,
		`t.yaml:4: g: "" is no tenant id: at most 150 of a-z A-Z 0-9 !-_.*'(), and not . or .. alone`,
		"t.yaml:5: is no name")
	f("a: b\n c: d: e", nil, "t.yaml: yaml: line 2: mapping values are not allowed in this context")
}

// Scenario: the table changes while the connector runs, at first to something wrong. Guarantees: the old one stays until there
// is a right one, and what is wrong is told with its line; names that are in no table are nobody's.
func TestATableIsReadAgainWhenItChanges(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tenants.yaml")
	write := func(text string, age time.Duration) { // in one go: it is looked at every millisecond
		next := file + ".next"
		require.NoError(t, os.WriteFile(next, []byte(text), 0o600))
		require.NoError(t, os.Chtimes(next, time.Time{}, time.Now().Add(-age)))
		require.NoError(t, os.Rename(next, file))
	}
	write("ns-a: a\n", time.Hour)
	core, logs := observer.New(zap.ErrorLevel)
	h := newHost()
	r := newRigOn(t, h, zap.New(core), direct, func(c *Config) {
		c.Mapping = MappingConfig{Table: file, ReloadInterval: time.Millisecond}
	})
	goesTo := func() string {
		d := r.to[toTenants]
		d.mu.Lock()
		clear(d.taken)
		d.mu.Unlock()
		require.NoError(t, r.ConsumeMetrics(t.Context(), batch(1, "k8s.namespace.name=ns-a")))
		for tenant := range d.points() {
			return tenant
		}
		return ""
	}
	assert.Equal(t, "a", goesTo())
	require.NoError(t, r.ConsumeMetrics(t.Context(), batch(1, "k8s.namespace.name=ns-b")))
	assert.Equal(t, map[string]int{"a": 1, "_unknown": 1}, r.to[toTenants].points())

	write("ns-a: a/b\n", time.Minute)
	require.Eventually(t, func() bool { return logs.Len() == 1 }, time.Minute, time.Millisecond)
	assert.Contains(t, logs.All()[0].ContextMap()["error"], "tenants.yaml:1: ns-a: \"a/b\" is no tenant id")
	assert.Equal(t, "a", goesTo())
	assert.Equal(t, map[string]int64{"metrics": 1}, r.counted("otelcol_tenant_routing_table_load_failures", "data_type"))

	write("ns-a: z\n", time.Second)
	require.Eventually(t, func() bool { return goesTo() == "z" }, time.Minute, time.Millisecond)
	require.Eventually(t, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.events) == 2
	}, time.Minute, time.Millisecond)
	assert.Equal(t, componentstatus.StatusRecoverableError, h.events[0].Status())
	assert.Equal(t, componentstatus.StatusOK, h.events[1].Status())
}

func TestATableThatCannotBeReadKeepsTheConnectorFromStarting(t *testing.T) {
	r := buildRig(t, newHost(), zap.NewNop(), func(c *Config) { c.Mapping.Table = "no/such/file.yaml" })
	assert.ErrorContains(t, r.Start(t.Context(), r.host), "mapping::table: open no/such/file.yaml")
}

// Guarantees: whatever a name is, what it is mapped to is an id that backends take, or nobody's; and the same name is always
// mapped to the same.
func FuzzNamesBecomeIdsThatBackendsTake(f *testing.F) {
	for _, name := range []string{"team-a", "", "..", "a/b", "ünknown", strings.Repeat("x", 150), "a\x00b", "_overflow", "{tenant}", "shop-prod"} {
		f.Add(name)
	}
	r := newRig(f, direct, func(c *Config) {
		c.Mapping.Template = "eu-{tenant}"
		c.MaxTenants = 100
	})
	r.mapping.table.Store(&map[string]string{"shop-prod": "shop"})
	f.Fuzz(func(t *testing.T, name string) {
		first, _, why := r.named(name)
		again, _, _ := r.named(name)
		require.Same(t, first, again)
		require.True(t, tenant.Valid(first.id), first.id)
		switch why {
		case noReason:
			if name != "shop-prod" {
				require.Equal(t, "eu-"+name, first.id)
			}
		case overflowing:
			require.Equal(t, "_overflow", first.id)
		default:
			require.Equal(t, "_unknown", first.id)
		}
		require.LessOrEqual(t, r.tenants.Len(), 100)
	})
}

// Guarantees: no table of whatever bytes is taken with an id in it that backends would not take, and none ends the process.
func FuzzTablesHaveNoOtherIds(f *testing.F) {
	for _, text := range []string{"a: b", "{}", "- a", "a: &x b\nc: *x", "<<: {a: b}", "a: !!int 7", "\xff"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := parseTable("t.yaml", data)
		if err != nil {
			return
		}
		for name, id := range table {
			require.NotEmpty(t, name)
			require.True(t, tenant.Valid(id), id)
		}
	})
}
