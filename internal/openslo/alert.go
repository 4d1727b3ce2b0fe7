// SPDX-License-Identifier: Apache-2.0

package openslo

import (
	"fmt"
	"regexp"
	"slices"
	"time"
)

// alertPolicy is an AlertPolicy with the place of its condition's numbers.
type alertPolicy struct {
	AlertPolicy
	condition alertCondition
}

// alertCondition is an AlertCondition with the places where an SLO that it does not fit is told so.
type alertCondition struct {
	AlertCondition
	threshold, lookback value
}

// head is what documents and their inline forms begin with.
type head struct {
	kind     Kind
	meta     metadata
	position Position
}

func (d document) head() head { return head{kind: d.kind, meta: d.meta, position: d.pos()} }

// inline opens an item of a list that is either {REFKEY: name} or a whole document without apiVersion, as OpenSLO
// has it. It returns the name referred to, or the document's head and spec; false when neither can be told.
func (p *parser) inline(item value, kind Kind, refKey string) (ref value, name string, h head, spec value, ok bool) {
	if text, single := item.scalar(); single {
		item.problemf("is %s: write %s: %s", item.what(), refKey, text) // as early drafts of OpenSLO had it
		return ref, "", h, spec, false
	}
	o, ok := item.object(refKey, "apiVersion", "kind", "metadata", "spec")
	if !ok {
		return ref, "", h, spec, false
	}
	if o.has(refKey) {
		if len(o.keys) > 1 {
			o.problemf("has %s besides an inline %s: keep one", refKey, kind)
			return ref, "", h, spec, false
		}
		if ref, ok = o.get(refKey); ok {
			name, ok = ref.text()
		}
		return ref, name, h, spec, ok
	}
	if o.meant[refKey] {
		return ref, "", h, spec, false
	}
	if !o.has("kind") && !o.has("metadata") && !o.has("spec") {
		o.problemf("is neither a reference nor an inline %s: write %s: NAME, or kind, metadata and spec", kind, refKey)
		return ref, "", h, spec, false
	}
	h = head{kind: kind, position: o.pos()}
	if k, has := o.get("kind"); has {
		_, ok = oneOf(k, kind)
	}
	if v, has := o.get("apiVersion"); has {
		_, fine := oneOf(v, APIVersionOpenSLO)
		ok = ok && fine
	}
	if m, has := o.need("metadata", "name the "+string(kind)+", e.g. metadata: {name: fast-burn}"); has {
		h.meta = readMetadata(m, nil)
	}
	spec, has := o.need("spec", "say what the "+string(kind)+" is")
	return ref, "", h, spec, ok && has && h.meta.name != ""
}

// byRef is what a reference names among the documents of a kind that were read.
func byRef[T any](p *parser, ref value, kind Kind, name string, known map[string]T) (T, bool) {
	t, ok := known[name]
	if !ok {
		p.unresolved(ref, kind, name)
	}
	return t, ok
}

func (p *parser) readDataSource(h head, v value) {
	o, ok := v.object("description", "type", "connectionDetails")
	if !ok {
		return
	}
	ds := DataSource{Name: h.meta.name, DisplayName: h.meta.displayName, Description: readDescription(o), Position: h.position}
	if t, ok := o.need("type", "write opentelemetry, or the type of the tool"); ok {
		if ds.Type, ok = t.text(); ok {
			checkType(t, ds.Type)
			p.dataSources[ds.Name] = ds
		}
	}
	p.catalog.DataSources = append(p.catalog.DataSources, ds)
}

func (p *parser) readNotificationTarget(h head, v value) (AlertNotificationTarget, bool) {
	before := len(p.problems)
	t := AlertNotificationTarget{Name: h.meta.name, DisplayName: h.meta.displayName, Position: h.position}
	o, ok := v.object("description", "target")
	if !ok {
		return t, false
	}
	t.Description = readDescription(o)
	if target, ok := o.need("target", "name what is notified, e.g. email, slack or pagerduty"); ok {
		t.Target, _ = target.text()
	}
	return t, len(p.problems) == before
}

func (p *parser) readAlertCondition(h head, v value) (alertCondition, bool) {
	before := len(p.problems)
	c := alertCondition{AlertCondition: AlertCondition{
		Name: h.meta.name, DisplayName: h.meta.displayName, Kind: BurnRate, Position: h.position,
	}}
	o, ok := v.object("description", "severity", "condition")
	if !ok {
		return c, false
	}
	c.Description = readDescription(o)
	if s, ok := o.need("severity", "write page or ticket, or a word of your own"); ok {
		c.Severity, _ = s.text()
	}
	if cond, ok := o.need("condition", "write e.g. {kind: burnrate, op: gte, threshold: 14.4, lookbackWindow: 1h, alertAfter: 5m}"); ok {
		readBurnRate(cond, &c)
	}
	return c, len(p.problems) == before
}

// readBurnRate reads the condition of an AlertCondition. OpenSLO knows burn rates only.
func readBurnRate(v value, c *alertCondition) {
	o, ok := v.object("kind", "op", "threshold", "lookbackWindow", "alertAfter")
	if !ok {
		return
	}
	if k, ok := o.get("kind"); ok {
		c.Kind, _ = oneOf(k, BurnRate)
	}
	if op, ok := o.need("op", "write gte or gt: it alerts when the burn rate compares so"); ok {
		c.Op, ok = oneOf(op, OpLTE, OpGTE, OpLT, OpGT)
		if ok && c.Op.AtMost() {
			op.problemf("%s alerts while the error budget is hardly spent: write gte or gt", c.Op)
		}
	}
	if t, ok := o.need("threshold", "write a burn rate, e.g. 14.4: how many times faster than allowed the budget is spent"); ok {
		c.threshold = t
		n, fine := t.number()
		if c.Threshold = n; fine && n <= 0 {
			t.problemf("%s is reached always: write a burn rate above 0, e.g. 14.4", t.node.Value)
		}
	}
	if w, ok := o.need("lookbackWindow", "write over how long the burn rate is taken, e.g. 1h"); ok {
		c.lookback = w
		c.LookbackWindow = readFixedDuration(w, "1h")
	}
	if a, ok := o.get("alertAfter"); ok {
		c.AlertAfter = readAlertAfter(a)
	}
}

// zero is a duration of none at all, which only alertAfter may be.
var zero = regexp.MustCompile(`^0[mhdw]?$`)

func readAlertAfter(v value) time.Duration {
	if s, ok := v.scalar(); ok && zero.MatchString(s) {
		return 0
	}
	return readFixedDuration(v, "5m")
}

// readFixedDuration reads a duration shorthand of a length that no calendar has a say in.
func readFixedDuration(v value, example string) time.Duration {
	d, ok := readDuration(v, example)
	if !ok {
		return 0
	}
	switch d.Unit {
	case 'M', 'Q', 'Y':
		v.problemf("%s has no fixed length: write minutes, hours, days or weeks, e.g. %s", d, example)
		return 0
	}
	return d.Approx()
}

func (p *parser) readAlertPolicy(h head, v value) (alertPolicy, bool) {
	before := len(p.problems)
	a := alertPolicy{AlertPolicy: AlertPolicy{Name: h.meta.name, DisplayName: h.meta.displayName, Position: h.position}}
	o, ok := v.objectWith([]string{"notificationTargets"},
		"description", "alertWhenNoData", "alertWhenResolved", "alertWhenBreaching", "conditions", "notificationTargets")
	if !ok {
		return a, false
	}
	a.Description = readDescription(o)
	said := false
	for _, when := range []struct {
		key string
		to  *bool
	}{{"alertWhenNoData", &a.WhenNoData}, {"alertWhenResolved", &a.WhenResolved}, {"alertWhenBreaching", &a.WhenBreaching}} {
		said = said || o.has(when.key) || o.meant[when.key]
		if b, ok := o.get(when.key); ok {
			*when.to, _ = b.boolean()
		}
	}
	if !said {
		o.problemf("does not say when it alerts: write alertWhenBreaching: true, alertWhenResolved or alertWhenNoData")
	}
	p.readConditions(o, &a)
	a.Targets = p.readTargets(o)
	return a, len(p.problems) == before
}

func (p *parser) readConditions(o object, a *alertPolicy) {
	v, ok := o.need("conditions", "write one, e.g. [{conditionRef: fast-burn}]")
	if !ok {
		return
	}
	items, ok := v.list()
	if !ok {
		return
	}
	if len(items) > 1 {
		v.problemf("has %d conditions: OpenSLO takes exactly one, so write an AlertPolicy for each", len(items))
		return
	}
	ref, name, h, spec, ok := p.inline(items[0], KindAlertCondition, "conditionRef")
	switch {
	case !ok:
		return
	case name != "":
		a.condition, _ = byRef(p, ref, KindAlertCondition, name, p.alertConditions)
	default:
		a.condition, _ = p.readAlertCondition(h, spec)
	}
	a.Condition = a.condition.AlertCondition
}

// readTargets reads notificationTargets, which may be empty: references and inline documents.
func (p *parser) readTargets(o object) []AlertNotificationTarget {
	v, ok := o.get("notificationTargets")
	if !ok {
		return nil
	}
	var targets []AlertNotificationTarget
	for _, item := range v.listOrNone() {
		ref, name, h, spec, ok := p.inline(item, KindAlertNotificationTarget, "targetRef")
		if !ok {
			continue
		}
		var t AlertNotificationTarget
		if name != "" {
			t, ok = byRef(p, ref, KindAlertNotificationTarget, name, p.targets)
		} else {
			t, ok = p.readNotificationTarget(h, spec)
		}
		switch {
		case !ok:
		case slices.ContainsFunc(targets, func(other AlertNotificationTarget) bool { return other.Name == t.Name }):
			item.problemf("AlertNotificationTarget %s stands twice in the list: keep one", shown(t.Name))
		default:
			targets = append(targets, t)
		}
	}
	return targets
}

// boundAlert is an alert policy of an SLO.
type boundAlert struct {
	alertPolicy
	at  value // the reference or the inline document
	ref bool
}

// readAlertPolicies reads alertPolicies of an SLO. Real files leave the list empty, or nothing behind the key.
func (p *parser) readAlertPolicies(o object) []boundAlert {
	v, ok := o.get("alertPolicies")
	if !ok {
		return nil
	}
	var bound []boundAlert
	names := make(map[string]bool)
	for _, item := range v.listOrNone() {
		ref, name, h, spec, ok := p.inline(item, KindAlertPolicy, "alertPolicyRef")
		if !ok {
			continue
		}
		b := boundAlert{at: item}
		if name != "" {
			b.at, b.ref = ref, true
			b.alertPolicy, ok = byRef(p, ref, KindAlertPolicy, name, p.alertPolicies)
		} else {
			b.alertPolicy, ok = p.readAlertPolicy(h, spec)
		}
		switch {
		case !ok:
		case names[b.Name]:
			b.at.problemf("AlertPolicy %s stands twice in the list: keep one", shown(b.Name))
		default:
			names[b.Name] = true
			bound = append(bound, b)
		}
	}
	return bound
}

// check holds a burn-rate condition against an SLO: its objectives and its time window decide what can ever fire.
func (b boundAlert) check(slo SLO, objectives []placedObjective) {
	c := b.condition
	whole := slo.TimeWindow.Duration.Approx()
	if c.LookbackWindow > 0 && whole > 0 && c.LookbackWindow > whole {
		b.complain(c.lookback, "lookbackWindow %s is longer than the SLO's time window of %s: write less",
			c.lookback.node.Value, slo.TimeWindow.Duration)
	}
	for _, obj := range objectives {
		instead := fmt.Sprintf("give the objective in line %d its own SLO and alert", obj.at.pos().Line)
		if obj.Name == compositeName {
			instead = "promise more of its parts"
		}
		most := obj.MaxBurnRate()
		beyond := c.Threshold > most*(1+1e-9) || c.Op == OpGT && c.Threshold >= most*(1-1e-9)
		if c.Threshold > 0 && beyond {
			word := "of"
			if c.Op == OpGT {
				word = "above"
			}
			b.complain(c.threshold,
				"a burn rate %s %s can never be reached: with the target %s it is at most %s, when every event is bad; write a lower threshold, or %s",
				word, c.threshold.node.Value, trimmed(obj.Target), shortest(most), instead)
		}
	}
}

// complain tells a problem where it can be put right: at the number, or, where that stands in a document that other
// SLOs may use too, at the SLO's reference to it.
func (b boundAlert) complain(own value, format string, args ...any) {
	if !b.ref {
		own.problemf(format, args...)
		return
	}
	at := own.pos()
	b.at.problemf("%s:%d: "+format, append([]any{at.File, at.Line}, args...)...)
}
