// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// source is where an expression looks.
type source int

const (
	ofName source = iota // the name of the metric, span or event
	ofItem
	ofScope
	ofResource
)

// attribute is what an expression looks at.
type attribute struct {
	from source
	key  string // empty for ofName
}

// comparison is a condition of the form datapoint.attributes["k"] == "v".
type comparison struct {
	attribute
	text string
}

// paths are the words of a signal.
type paths struct {
	item string // before .attributes
	name string // of what comparisons with the name begin with
}

var (
	pointPaths = paths{"datapoint", "metric.name"}
	spanPaths  = paths{"span", "span.name"}
	logPaths   = paths{"log", "log.event_name"}
)

// The forms leave out texts with escapes, whose meaning is OTTL's to tell.
var (
	attributeForm  = regexp.MustCompile(`^\s*([a-z_]+)\.attributes\["([^"\\]+)"\]\s*$`)
	comparisonForm = regexp.MustCompile(`^(\s*[a-z_.]+(?:\["[^"\\]+"\])?\s*)==\s*"([^"\\]*)"\s*$`)
	alternatives   = regexp.MustCompile(`(?i)\bor\b`)
)

// attribute reads a path that is nothing but an attribute.
func (p paths) attribute(path string) (attribute, bool) {
	m := attributeForm.FindStringSubmatch(path)
	if m == nil {
		return attribute{}, false
	}
	switch m[1] {
	case p.item:
		return attribute{ofItem, m[2]}, true
	case "scope", "instrumentation_scope":
		return attribute{ofScope, m[2]}, true
	case "resource":
		return attribute{ofResource, m[2]}, true
	default:
		return attribute{}, false
	}
}

func (p paths) comparison(text string) (c comparison, ok bool) {
	m := comparisonForm.FindStringSubmatch(text)
	if m == nil {
		return comparison{}, false
	}
	if strings.TrimSpace(m[1]) == p.name {
		return comparison{attribute{from: ofName}, m[2]}, true
	}
	a, ok := p.attribute(m[1])
	return comparison{a, m[2]}, ok
}

// comparisons reads the comparisons that a condition begins with, joined to each other and to what follows by `and`. Such
// conditions are by far the most frequent, and they can be looked up instead of being evaluated one after another. all says
// that nothing follows.
func (p paths) comparisons(condition string) (list []comparison, all bool) {
	rest := condition
	for rest != "" {
		head, tail, more := strings.Cut(rest, " and ") // inside a text it leaves a head that has not the form
		c, ok := p.comparison(head)
		if !ok || more && tail == "" {
			break
		}
		list, rest = append(list, c), tail
	}
	if rest != "" && alternatives.MatchString(rest) {
		return nil, false // what follows may be another way to hold; inside a text it is none, but that costs time only
	}
	slices.SortFunc(list, func(a, b comparison) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.key, b.key), cmp.Compare(a.text, b.text))
	})
	return list, rest == ""
}

// place is what can be looked up of an item.
type place struct {
	name                  string
	item, scope, resource pcommon.Map
}

func (at *place) get(a *attribute) (pcommon.Value, bool) {
	switch a.from {
	case ofScope:
		return at.scope.Get(a.key)
	case ofResource:
		return at.resource.Get(a.key)
	default:
		return at.item.Get(a.key)
	}
}

// text returns the text of the attribute. Other types than texts equal no text in OTTL.
func (at *place) text(a *attribute) (string, bool) {
	if a.from == ofName {
		return at.name, true
	}
	v, ok := at.get(a)
	if !ok || v.Type() != pcommon.ValueTypeStr {
		return "", false
	}
	return v.Str(), true
}
