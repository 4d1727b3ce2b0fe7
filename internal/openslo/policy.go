// SPDX-License-Identifier: Apache-2.0

package openslo

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
)

// readPolicy reads a ViolationPolicy document.
func (p *parser) readPolicy(d document, v value) {
	o, ok := v.objectWith([]string{"notificationTargets"},
		"window", "consecutiveWindows", "when", "onNoData", "severity", "notificationTargets")
	if !ok {
		return
	}
	policy := ViolationPolicy{
		Name: d.meta.name, ConsecutiveWindows: 1, OnNoData: NoDataHold, Position: d.pos(),
	}
	if w, ok := o.need("window", "write a Go duration, e.g. 5m"); ok {
		policy.Window = readGoDuration(w, "5m")
	}
	if c, ok := o.get("consecutiveWindows"); ok {
		policy.ConsecutiveWindows = readCount(c)
	}
	if n, ok := o.get("onNoData"); ok {
		policy.OnNoData, _ = oneOf(n, NoDataHold, NoDataOpen, NoDataClose)
	}
	if s, ok := o.get("severity"); ok {
		policy.Severity = readSeverity(s)
	}
	policy.Targets = p.readTargets(o)
	if w, ok := o.need("when", "say when it is violated, e.g. all: [{slo: chat-ttft}]"); ok {
		t := tree{parser: p}
		policy.When, _ = t.read(w)
		policy.GroupBy = t.groupBy(w)
	}
	p.catalog.Policies = append(p.catalog.Policies, policy)
}

// severity is a word that alerts are routed by.
var severity = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

func readSeverity(v value) string {
	s, ok := v.text()
	if ok && !severity.MatchString(s) {
		v.problemf("%s is no severity: write a word of lower case letters, digits and inner dashes, e.g. page or ticket", shown(s))
		return ""
	}
	return s
}

const (
	// MaxPolicyWindow is far beyond what anybody waits for before a promise counts as broken.
	MaxPolicyWindow = 90 * 24 * time.Hour
	// maxConsecutive likewise.
	maxConsecutive = 1000
)

// readGoDuration reads a Go duration; example is one that fits.
func readGoDuration(v value, example string) time.Duration {
	s, ok := v.quantity(example)
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		v.problemf("%s is no Go duration: write e.g. %s or 1h30m", shown(s), example)
	case d < time.Second:
		v.problemf("%s is shorter than a second: write e.g. %s", s, example)
	case d%time.Second != 0:
		v.problemf("%s is no whole number of seconds: write e.g. %s", s, d.Round(time.Second))
	case d > MaxPolicyWindow:
		v.problemf("%s is longer than 2160h: write a shorter window", s)
	default:
		return d
	}
	return 0
}

func readCount(v value) int {
	n, ok := v.number()
	if !ok {
		return 0
	}
	if n < 1 || n > maxConsecutive || n != math.Trunc(n) {
		v.problemf("%s is no number of windows: write 1 to %d", v.node.Value, maxConsecutive)
		return 0
	}
	return int(n)
}

// tree reads `when` and notes the SLOs in it.
type tree struct {
	*parser
	leaves []string // names of SLOs, in order, each once
}

func (t *tree) read(v value) (Condition, bool) {
	o, ok := v.object("all", "any", "slo")
	if !ok {
		return Condition{}, false
	}
	if len(o.fields) != 1 {
		var have []string
		for _, key := range []string{"all", "any", "slo"} {
			if o.has(key) {
				have = append(have, key)
			}
		}
		switch {
		case len(have) > 1:
			o.problemf("has %s: keep one, and nest the other in it", join(have, "and"))
			return Condition{}, false
		case len(o.fields) == 0:
			o.problemf("is empty: write all, any or slo")
			return Condition{}, false
		}
	}
	if v, ok := o.get("slo"); ok {
		return t.leaf(v)
	}
	if v, ok := o.get("all"); ok {
		list, ok := t.branch(v)
		return Condition{All: list}, ok
	}
	if v, ok := o.get("any"); ok {
		list, ok := t.branch(v)
		return Condition{Any: list}, ok
	}
	return Condition{}, false
}

func (t *tree) branch(v value) ([]Condition, bool) {
	items, ok := v.list()
	list := make([]Condition, 0, len(items))
	for _, item := range items {
		c, fine := t.read(item)
		ok = ok && fine
		list = append(list, c)
	}
	return list, ok
}

func (t *tree) leaf(v value) (Condition, bool) {
	name, doc, ok := t.readSLOName(v)
	if !ok {
		return Condition{}, false
	}
	if len(doc.ids) > 0 && !doc.evaluated {
		v.problemf("SLO %s is not measured here, so the policy could never open: give all of its metrics the type %s", shown(name), TypeOpenTelemetry)
		return Condition{}, false
	}
	if !slices.Contains(t.leaves, name) {
		t.leaves = append(t.leaves, name)
	}
	return Condition{SLO: name, IDs: doc.ids}, true
}

// readSLOName reads the name of an SLO document that there is.
func (p *parser) readSLOName(v value) (string, sloDocument, bool) {
	name, ok := v.text()
	if !ok {
		return "", sloDocument{}, false
	}
	doc, known := p.slos[name]
	switch {
	case known:
	case strings.Contains(name, ":"):
		v.problemf("%s is a slo_id: write the metadata.name of its SLO document", shown(name))
	default:
		p.unresolved(v, KindSLO, name)
	}
	return name, doc, known
}

// groupBy is the grouping that all SLOs of the tree share: a policy is judged group by group. Order is no
// difference.
func (t *tree) groupBy(v value) []string {
	var first []string
	for i, name := range t.leaves {
		keys := t.slos[name].groupBy
		if i == 0 {
			first = keys
			continue
		}
		if !slices.Equal(slices.Sorted(slices.Values(keys)), slices.Sorted(slices.Values(first))) {
			v.problemf("its SLOs have different groups, %s %s and %s %s: write the same %s on both",
				t.leaves[0], grouping(first), name, grouping(keys), annotationGroupBy)
			return nil
		}
	}
	return first
}

func grouping(keys []string) string {
	if len(keys) == 0 {
		return "without any"
	}
	return "by " + strings.Join(keys, ",")
}
