// SPDX-License-Identifier: Apache-2.0

package sloschemaprocessor

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-llm/otelcol-llm/internal/labels"
)

// labelSet are the values of the canonical labels, in the order of labels.Canonical; empty is not known.
type labelSet [len(labels.Canonical)]string

// bits are canonical labels, bit i for labels.Canonical[i].
type bits uint8

const (
	hasID bits = 1 << iota
	hasService
	hasClass
	hasTarget
	hasUnit
	hasAll = 1<<len(labels.Canonical) - 1
)

// found is what the attributes of a point say before it is labelled.
type found struct {
	have   bits
	tenant bool
	sloth  bool // it has a sloth_id
}

// scan looks at the attributes of a point once: each point of every metric comes through here.
func scan(a pcommon.Map) (f found) {
	for k, v := range a.All() {
		switch k {
		case labels.SLOID:
			if v.Type() != pcommon.ValueTypeStr || v.Str() != "" { // an empty label is none, as in Prometheus
				f.have |= hasID
			}
		case labels.Service:
			f.have |= hasService
		case labels.Class:
			f.have |= hasClass
		case labels.Target:
			f.have |= hasTarget
		case labels.Unit:
			f.have |= hasUnit
		case labels.Tenant:
			f.tenant = true
		case "sloth_id":
			f.sloth = true
		}
	}
	return f
}

// put writes the labels that are known. A label that stands there with another value is moved aside, as Prometheus does:
// to overwrite it could make two series one.
func (l *labelSet) put(a pcommon.Map, have bits) {
	a.EnsureCapacity(a.Len() + len(l) + 1) // and the tenant
	for i, value := range l {
		if value == "" {
			continue
		}
		if have&(1<<i) == 0 {
			a.PutStr(labels.Canonical[i], value)
			continue
		}
		replace(a, labels.Canonical[i], value)
	}
}

func replace(a pcommon.Map, key, value string) {
	v, _ := a.Get(key)
	if v.Type() == pcommon.ValueTypeStr && v.Str() == value {
		return
	}
	aside := "exported_" + key
	for {
		if _, taken := a.Get(aside); !taken {
			break
		}
		aside = "exported_" + aside
	}
	was := pcommon.NewValueEmpty()
	v.MoveTo(was)
	was.MoveTo(a.PutEmpty(aside)) // which may move the attributes in memory
	a.PutStr(key, value)
}

// missing are the labels without a value.
func (l *labelSet) missing() (m bits) {
	for i, value := range l {
		if value == "" {
			m |= 1 << i
		}
	}
	return m
}

// missingTag is the attribute that says which canonical labels a point lacks.
const missingTag = "slo.missing"

// missingNames are the values of missingTag for each combination of labels.
var missingNames = func() (names [hasAll + 1]string) {
	for m := range names {
		var list []string
		for i, key := range labels.Canonical {
			if m&(1<<i) != 0 {
				list = append(list, key)
			}
		}
		names[m] = strings.Join(list, ",")
	}
	return names
}()
