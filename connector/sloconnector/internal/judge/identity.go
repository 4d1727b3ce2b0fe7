// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// Identity says of what a result is: an SLO, and the group for which it is judged apart. It never changes, so it may be
// read while the judge goes on.
type Identity struct {
	*subject
	values []string // of the subject's keys; empty for an attribute that is absent
}

// subject is what the identities of all groups of an SLO have in common.
type subject struct {
	slo      *openslo.SLO
	keys     []string
	overflow bool // of the group of all that came beyond MaxSeries
}

// SLO is the SLO that is promised.
func (id *Identity) SLO() *openslo.SLO { return id.slo }

// Group calls f for every group-by key that has a value here.
func (id *Identity) Group(f func(key, value string)) {
	for i, key := range id.keys {
		if id.values[i] != "" {
			f(key, id.values[i])
		}
	}
}

// Tenant identifies the values that the group has for some of the keys: results that agree in it share a resource.
func (id *Identity) Tenant(keys []string) string {
	var b []byte
	id.Group(func(key, value string) {
		if slices.Contains(keys, key) {
			b = appendText(appendText(b, key), value)
		}
	})
	return string(b)
}

// Overflow reports whether this is the group of all that came beyond MaxSeries.
func (id *Identity) Overflow() bool { return id.overflow }

// compare orders by SLO, then by group.
func (id *Identity) compare(o *Identity) int {
	return cmp.Or(strings.Compare(id.slo.ID, o.slo.ID), slices.Compare(id.values, o.values))
}

// overflowKey is the group of all series beyond MaxSeries. No other key begins like it: theirs begin with a length.
const overflowKey = "overflow"

// groupKey joins group values. Their lengths stand before them, so no value can imitate another group.
func groupKey(values []string) string {
	var b []byte
	for _, v := range values {
		b = appendText(b, v)
	}
	return string(b)
}

// partsOf are the values as parts of the key that was made of them: they take no memory of their own, and hold no batch.
func partsOf(key string, values []string) []string {
	own := make([]string, len(values))
	for i, v := range values {
		_, key, _ = strings.Cut(key, ":")
		own[i], key = key[:len(v)], key[len(v):]
	}
	return own
}

func appendText(b []byte, s string) []byte {
	b = strconv.AppendInt(b, int64(len(s)), 10)
	b = append(b, ':')
	return append(b, s...)
}
