// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"regexp"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// attribute is where a condition looks.
type attribute struct {
	context string // datapoint, scope or resource
	key     string
}

// comparison is a condition of the form datapoint.attributes["k"] == "v".
type comparison struct {
	attribute
	text string
}

// comparisonForm leaves out texts with escapes, whose meaning is OTTL's to tell.
var comparisonForm = regexp.MustCompile(
	`^\s*(datapoint|scope|instrumentation_scope|resource)\.attributes\["([^"\\]+)"\]\s*==\s*"([^"\\]*)"\s*$`)

// comparisons reads a condition that is nothing but comparisons joined by `and`. Such conditions are by far the most
// frequent, and they can be looked up instead of being evaluated one after another.
func comparisons(condition string) ([]comparison, bool) {
	var all []comparison
	for part := range strings.SplitSeq(condition, " and ") { // inside a text it leaves a part that has not the form
		m := comparisonForm.FindStringSubmatch(part)
		if m == nil {
			return nil, false
		}
		context := m[1]
		if context == "instrumentation_scope" {
			context = "scope"
		}
		all = append(all, comparison{attribute{context, m[2]}, m[3]})
	}
	return all, true
}

// place is where attributes of a point stand.
type place struct {
	point pcommon.Map
	sm    pmetric.ScopeMetrics
	rm    pmetric.ResourceMetrics
}

// of returns the text of the attribute. Other types than texts equal no text in OTTL.
func (a *attribute) of(at place) (string, bool) {
	from := at.point
	switch a.context {
	case "scope":
		from = at.sm.Scope().Attributes()
	case "resource":
		from = at.rm.Resource().Attributes()
	}
	v, ok := from.Get(a.key)
	if !ok || v.Type() != pcommon.ValueTypeStr {
		return "", false
	}
	return v.Str(), true
}

// all reports whether all comparisons hold.
func (at place) all(list []comparison) bool {
	for i := range list {
		if text, ok := list[i].of(at); !ok || text != list[i].text {
			return false
		}
	}
	return true
}
