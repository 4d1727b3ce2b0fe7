// SPDX-License-Identifier: Apache-2.0

// Package promrules writes an SLO catalog as Prometheus recording and alerting rules.
//
// For each SLO and group there is the share of good events over several windows, weighted by events
// (slo:sli:ratio), and how fast it spends the error budget (slo:burn_rate:ratio). ViolationPolicies and AlertPolicies
// become alerts on them. What Prometheus cannot say, or cannot say exactly, is told and never silently left out.
package promrules

import (
	"fmt"
	"slices"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/promsli"
)

// The names of what is recorded.
const (
	sliRatio    = "slo:sli:ratio"
	burnRate    = "slo:burn_rate:ratio"
	samplesGood = "slo:sli_samples:good"
	samplesAll  = "slo:sli_samples:total"
)

// The names of the alerts.
const (
	alertViolation = "slo:violation"
	alertBurnRate  = "slo:burn_rate"
	alertNoData    = "slo:no_data"
)

// windows are those over which each SLO is recorded; what policies and alerts look at comes on top.
var windows = []time.Duration{5 * time.Minute, 30 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour, 72 * time.Hour}

// Options say what SLO files cannot.
type Options = promsli.Kinds

// Group is a rule group.
type Group struct {
	Name     string
	Comments []string // what is not exactly as the slo connector has it
	Rules    []Rule
}

// Rule is a recording rule or an alert.
type Rule struct {
	Record, Alert string
	Expr          string
	For           time.Duration
	Labels        map[string]string
	Annotations   map[string]string
}

// Skipped is something of the catalog that no rule says.
type Skipped struct {
	What   string // an SLO's slo_id, or a policy
	Reason string
}

func (s Skipped) String() string { return s.What + ": " + s.Reason }

// Build makes the rules of a catalog, and tells what it could not make.
func Build(c *openslo.Catalog, opts Options) (groups []Group, skipped []Skipped) {
	b := &builder{catalog: c, opts: opts, made: make(map[string]*openslo.SLO)}
	for i := range c.SLOs {
		b.slo(&c.SLOs[i])
	}
	for i := range c.Policies {
		b.policy(&c.Policies[i])
	}
	return b.groups, b.skipped
}

type builder struct {
	catalog *openslo.Catalog
	opts    Options
	groups  []Group
	skipped []Skipped
	made    map[string]*openslo.SLO // by slo_id, those that have rules
}

func (b *builder) skip(what, format string, args ...any) {
	b.skipped = append(b.skipped, Skipped{What: what, Reason: fmt.Sprintf(format, args...)})
}

// slo makes the group of an SLO.
func (b *builder) slo(slo *openslo.SLO) {
	sli, err := promsli.New(slo, slo.GroupBy, b.opts)
	if err != nil {
		b.skip(slo.ID, "%v", err)
		return
	}
	b.made[slo.ID] = slo
	g := Group{Name: "slo/" + slo.ID, Comments: sli.Comments}
	ratio := sli.Ratio
	if sli.Points != nil {
		g.Rules, ratio = points(slo, sli.Points)
	}
	spans := b.windowsOf(slo)
	for _, w := range spans {
		g.Rules = append(g.Rules, Rule{Record: sliRatio, Expr: ratio(promsli.Span(w)), Labels: labelsOf(slo, w)})
	}
	for _, w := range spans {
		if expr := burn(slo, w); expr != "" {
			g.Rules = append(g.Rules, Rule{Record: burnRate, Expr: expr, Labels: labelsOf(slo, w)})
		}
	}
	for i := range slo.AlertPolicies {
		g.Rules = append(g.Rules, b.alerts(slo, &slo.AlertPolicies[i], spans)...)
	}
	b.groups = append(b.groups, g)
}

// windowsOf are the windows over which an SLO is recorded, from the shortest to the longest.
func (b *builder) windowsOf(slo *openslo.SLO) []time.Duration {
	all := slices.Clone(windows)
	if slo.Objective.TimeSliceWindow > 0 {
		all = append(all, slo.Objective.TimeSliceWindow)
	}
	for i := range b.catalog.Policies {
		if pol := &b.catalog.Policies[i]; slices.Contains(leaves(&pol.When), slo.ID) {
			all = append(all, pol.Window)
		}
	}
	for i := range slo.AlertPolicies {
		long := slo.AlertPolicies[i].Condition.LookbackWindow
		all = append(all, long)
		if short := openslo.ShortWindow(long); short > 0 {
			all = append(all, short)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// leaves are the slo_ids in a policy's condition, in order, each once.
func leaves(c *openslo.Condition) []string {
	ids := slices.Clone(c.IDs)
	for _, list := range [][]openslo.Condition{c.All, c.Any} {
		for i := range list {
			for _, id := range leaves(&list[i]) {
				if !slices.Contains(ids, id) {
					ids = append(ids, id)
				}
			}
		}
	}
	return ids
}

// labelsOf are the canonical labels, and window where it is not zero.
func labelsOf(slo *openslo.SLO, w time.Duration) map[string]string {
	l := map[string]string{
		"slo_id": slo.ID, "service": slo.Service, "slo_class": string(slo.Class), "target": slo.Target(), "unit": slo.Unit,
	}
	if w > 0 {
		l["window"] = promsli.Span(w)
	}
	return l
}

// recorded selects what was recorded of an SLO over a window.
func recorded(metric, id, window string) string {
	return fmt.Sprintf("%s{slo_id=%q, window=%q}", metric, id, window)
}
