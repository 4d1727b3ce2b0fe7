// SPDX-License-Identifier: Apache-2.0

package openslo

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAlertPoliciesAreResolvedIntoTheSLOsThatUseThem(t *testing.T) {
	c, err := Parse(source(t, "testdata/good/alerts.yaml"))
	require.NoError(t, err)
	at := func(line int) Position { return Position{File: "alerts.yaml", Line: line} }
	ticket := AlertPolicy{Name: "ticket", WhenNoData: true, WhenResolved: true, WhenBreaching: true, Position: at(15),
		Condition: AlertCondition{Name: "slow-burn", Description: "A tenth of the budget in three days.", Severity: "ticket",
			Kind: BurnRate, Op: OpGT, Threshold: 1, LookbackWindow: 72 * time.Hour, Position: at(7)}}
	page := AlertPolicy{Name: "page", DisplayName: "Pager", Description: "The budget of four weeks would be gone in two days.",
		WhenBreaching: true, Position: at(41),
		Condition: AlertCondition{Name: "fast-burn", DisplayName: "Fast", Severity: "page", Kind: BurnRate, Op: OpGTE, Threshold: 10,
			LookbackWindow: time.Hour, Position: at(47)},
		Targets: []AlertNotificationTarget{
			{Name: "mail", DisplayName: "Mail", Target: "email", Position: at(2)},
			{Name: "pager", Description: "The pager.", Target: "pagerduty", Position: at(54)},
		}}
	for _, id := range []string{"llm:chat:availability:90", "llm:chat:availability:99.9"} {
		assert.Equal(t, []AlertPolicy{ticket, page}, find(t, c, id).AlertPolicies, "all objectives of a document share its alerts")
	}
	assert.Equal(t, []AlertPolicy{ticket}, c.AlertPolicies, "what stands inline in an SLO is no document")
	assert.Len(t, c.AlertConditions, 1)
	assert.Len(t, c.NotificationTargets, 1)
}

// Scenario: a composite SLO over two indicators in different units. Guarantees: each objective is in the catalog with
// its own indicator, unit and weight, and is judged by itself.
func TestThePartsOfACompositeAreJudgedByThemselves(t *testing.T) {
	c, err := Parse(source(t, "testdata/good/alerts.yaml"))
	require.NoError(t, err)
	ttft := find(t, c, "llm:chat:chat-experience:ttft-p95")
	assert.Equal(t, []string{"seconds", "latency", "0.5000"}, []string{ttft.Unit, string(ttft.Class), ttft.Target()})
	assert.Equal(t, &Composite{Weight: 3, Share: 0.75}, ttft.Composite)
	errs := find(t, c, "llm:chat:chat-experience:errors-99")
	assert.Equal(t, []string{"ratio", "availability", "0.9900"}, []string{errs.Unit, string(errs.Class), errs.Target()})
	assert.Equal(t, &Composite{Weight: 1, Share: 0.25}, errs.Composite)
	for _, s := range []SLO{ttft, errs} {
		assert.True(t, s.Evaluated())
		assert.Equal(t, "Asia/Kolkata", s.TimeWindow.Location.String())
	}
}

func TestWhatIsNotMeasuredSaysWhy(t *testing.T) {
	f := func(in Indicator, want string) {
		t.Helper()
		s := SLO{Indicator: in}
		assert.Equal(t, want, s.NotEvaluated())
		assert.Equal(t, want == "", s.Evaluated())
	}
	f(Indicator{}, "it has no indicator")
	f(Indicator{Threshold: &Selector{Type: TypeOpenTelemetry}}, "")
	f(Indicator{Ratio: &Ratio{Good: &Selector{Type: TypeOpenTelemetry}, Total: &Selector{Type: "Datadog"}}},
		"its metricSource is of type Datadog, which another tool measures, and not opentelemetry")
}

func find(t testing.TB, c *Catalog, id string) SLO {
	t.Helper()
	for _, s := range c.SLOs {
		if s.ID == id {
			return s
		}
	}
	require.Fail(t, "no SLO has the id "+id)
	return SLO{}
}
