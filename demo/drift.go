// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// dimensions are those of drift_heatmap that the demo's replicas have.
var dimensions = []string{"cloud.region", "device.type", "model.version", "tenant"}

// cell is a promise in one combination of the dimensions, which is worse than its peer.
type cell struct {
	slo   *openslo.SLO
	where map[string]string
}

// tellDrift says which cell degrades while the number over all of them is as promised, and when it is over.
func (n *narrator) tellDrift(ctx context.Context) {
	if time.Since(n.looked) < time.Second {
		return
	}
	n.looked = time.Now()
	degraded := n.database.ask(ctx, `slo_drift_state{state="degraded"} == 1`, n.looked)
	if n.worse == nil {
		if len(degraded) > 0 {
			n.tellDegraded(ctx, degraded[0].Metric)
		}
		return
	}
	if len(degraded) > 0 || n.active > 0 {
		return
	}
	if state := n.database.ask(ctx, fmt.Sprintf(`slo_drift_state{state="ok",slo_id=%q,%s} == 1`, n.worse.slo.ID, equals(n.worse.where)), n.looked); len(state) == 1 {
		n.say("%s is as good as the others again", labels(n.worse.where))
		n.worse = nil
	}
}

func (n *narrator) tellDegraded(ctx context.Context, m model.Metric) {
	i := slices.IndexFunc(n.catalog.SLOs, func(s openslo.SLO) bool { return s.ID == string(m["slo_id"]) })
	if i < 0 || n.catalog.SLOs[i].Indicator.Threshold == nil {
		return
	}
	c := &cell{slo: &n.catalog.SLOs[i], where: map[string]string{}}
	for _, key := range dimensions {
		if v, ok := m[model.LabelName(label(key))]; ok {
			c.where[key] = string(v)
		}
	}
	here, known := n.database.number(ctx, fmt.Sprintf("slo_drift_observed{slo_id=%q,%s}", c.slo.ID, equals(c.where)), n.looked)
	share := 100 * c.slo.Objective.Target
	all, counted := n.database.number(ctx, fmt.Sprintf(`histogram_quantile(%g, sum by (le) (rate({__name__=%q}[20s])))`,
		c.slo.Objective.Target, c.slo.Indicator.Threshold.Metric+"_bucket"), n.looked)
	if !known || !counted || math.IsNaN(all) {
		return // at the next look
	}
	n.worse = c
	verdict := "the number over all is broken, too"
	if all <= c.slo.Objective.Value {
		verdict = "the number over all is green"
	}
	n.say("DEGRADED: %s\n%s%g %% of its values are within %.2f %s, over all replicas within %.2f; %g is promised: %s",
		labels(c.where), wrapped, share, here, c.slo.Unit, all, c.slo.Objective.Value, verdict)
	var why []string
	for _, x := range n.database.ask(ctx, fmt.Sprintf("sort_desc(slo_drift_explanation_ratio{slo_id=%q})", c.slo.ID), n.looked) {
		why = append(why, fmt.Sprintf("%s=%s %.0f %%", x.Metric["dimension"], x.Metric["value"], 100*x.Value))
	}
	if len(why) > 0 {
		n.say("what would not have been slow, were these like the others: %s", strings.Join(why, ", "))
	}
}
