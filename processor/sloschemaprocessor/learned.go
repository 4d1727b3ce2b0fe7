// SPDX-License-Identifier: Apache-2.0

package sloschemaprocessor

import (
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/readmostly"
)

// unitRatio is the unit of the target of every SLO of a dialect: the share of good events.
const unitRatio = "ratio"

// key identifies an SLO of a dialect by the values of its labels.
type key struct {
	dialect dialect
	labels  [3]string
}

// learned is what is known of an SLO of a dialect.
type learned struct {
	id     string
	class  string
	target atomic.Pointer[string] // nil as long as no series has told it
	bad    atomic.Bool            // what was told last cannot be a target
	heard  atomic.Int64           // Unix seconds
}

// memory holds the SLOs of the dialects. It is safe for concurrent use.
type memory struct {
	slos  *readmostly.Map[key, *learned]
	rules []rule
	ttl   int64        // seconds
	swept atomic.Int64 // Unix seconds
}

type rule struct {
	id    *regexp.Regexp
	class string
}

func newMemory(cfg *Config) *memory {
	m := &memory{slos: readmostly.New[key, *learned](cfg.MaxDialectSLOs), ttl: max(1, int64(cfg.DialectTTL/time.Second))}
	for _, r := range cfg.ClassRules {
		m.rules = append(m.rules, rule{regexp.MustCompile(r.SLOID), r.Class}) // Validate has compiled it
	}
	return m
}

// get returns what is known of an SLO. full says that it is new and that there is no room for it: what is returned then
// is known for this point only.
func (m *memory) get(k key, now int64) (slo *learned, full bool) {
	slo, ok := m.slos.Get(k)
	if !ok {
		slo, ok = m.slos.GetOrPut(clone(k), func() *learned { return m.create(k, now) })
	}
	if !ok {
		return m.create(k, now), true
	}
	// Written seldom, so that the processors' caches do not pass the line around for each point.
	if now-slo.heard.Load() > m.ttl/16 {
		slo.heard.Store(now)
	}
	return slo, false
}

func (m *memory) create(k key, now int64) *learned {
	slo := &learned{id: id(k), class: string(openslo.ClassAvailability)}
	slo.heard.Store(now)
	for _, r := range m.rules {
		if r.id.MatchString(slo.id) {
			slo.class = r.class
			break
		}
	}
	return slo
}

// id is the slo_id: the dialect's own, or, where it has several parts, those with colons between.
func id(k key) string {
	parts := make([]string, 0, len(k.labels))
	for _, part := range k.labels {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Clone(strings.Join(parts, ":"))
}

// clone makes a key that does not keep the memory of a request.
func clone(k key) key {
	for i, s := range k.labels {
		k.labels[i] = strings.Clone(s)
	}
	return k
}

// learn remembers the target. SLOs of the dialects promise a share of events, so nothing else can be one.
func (slo *learned) learn(target float64) {
	ok := target >= 0 && target <= 1 // NaN is not
	if slo.bad.Load() == ok {
		slo.bad.Store(!ok)
	}
	if !ok {
		return
	}
	text := strconv.FormatFloat(target, 'f', 4, 64)
	if before := slo.target.Load(); before == nil || *before != text {
		slo.target.Store(&text)
	}
}

// sweep forgets, at most four times in a TTL, what was not heard of for as long. It returns how many SLOs that were.
func (m *memory) sweep(now int64) int {
	last := m.swept.Load()
	if now-last < max(1, m.ttl/4) || !m.swept.CompareAndSwap(last, now) || last == 0 {
		return 0
	}
	return m.slos.Retain(func(_ key, slo *learned) bool { return now-slo.heard.Load() <= m.ttl })
}
