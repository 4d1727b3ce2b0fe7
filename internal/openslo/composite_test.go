// SPDX-License-Identifier: Apache-2.0

package openslo

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Scenario: a composite of a threshold and a ratio, with everything that an SLO document can say. Guarantees: the document is
// one more SLO that promises the mean of its parts' targets, by their shares, and whose alerts are its own.
func TestACompositeIsOneMoreSLO(t *testing.T) {
	c, err := Parse(source(t, "testdata/good/composite.yaml"))
	require.NoError(t, err)
	whole := find(t, c, "llm:chat:chat-experience:composite")
	assert.InDelta(t, 0.92, whole.Objective.Target, 1e-12)
	assert.InDelta(t, 0.85, whole.Objective.TimeSliceTarget, 1e-12)
	assert.Equal(t, "0.9200", whole.Target())
	require.Len(t, whole.AlertPolicies, 1)
	assert.True(t, whole.Evaluated())
	assert.Empty(t, whole.Indicator.Selectors())

	assert.Equal(t, SLO{
		ID: "llm:chat:chat-experience:composite", Name: "chat-experience", DisplayName: "What users feel", Service: "chat",
		Class: ClassAvailability, GroupBy: []string{"tenant"}, Unit: "ratio",
		Indicator: Indicator{Name: "chat-experience", Parts: []Part{
			{ID: "llm:chat:chat-experience:ttft-p90", Share: 0.75}, {ID: "llm:chat:chat-experience:errors-98", Share: 0.25},
		}},
		Objective: Objective{Name: "composite", Target: whole.Objective.Target,
			TimeSliceTarget: whole.Objective.TimeSliceTarget, TimeSliceWindow: 5 * time.Minute},
		TimeWindow: TimeWindow{Duration: Duration{Count: 28, Unit: 'd'}, Rolling: true}, Budgeting: Timeslices,
		AlertPolicies: whole.AlertPolicies,
		MinEvents:     30, Owner: "chat team", Runbook: "https://wiki.example.com/chat",
		Position: Position{File: "composite.yaml", Line: 15},
	}, whole)
	for _, part := range whole.Indicator.Parts {
		one := find(t, c, part.ID)
		assert.True(t, one.Evaluated())
		assert.Empty(t, one.AlertPolicies, "one alert, not three")
		assert.InDelta(t, part.Share, one.Composite.Share, 0)
		assert.Equal(t, []any{30, "chat team", "https://wiki.example.com/chat"}, []any{one.MinEvents, one.Owner, one.Runbook})
	}
}

func TestACompositeIsMeasuredWhereAllItsPartsAre(t *testing.T) {
	c, err := Parse(source(t, "testdata/good/composite.yaml"))
	require.NoError(t, err)
	half := find(t, c, "llm:chat:half:composite")
	assert.False(t, half.Evaluated())
	assert.Equal(t, "its part llm:chat:half:other-90 is not: its metricSource is of type Prometheus, which another tool measures, and not opentelemetry",
		half.NotEvaluated())
	assert.Equal(t, ClassQuality, half.Class)
	errs := find(t, c, "llm:chat:half:errors-90")
	assert.True(t, errs.Evaluated())
}

func TestAPolicyOverACompositeLooksAtTheWhole(t *testing.T) {
	c, err := Parse(source(t, "testdata/good/composite.yaml"))
	require.NoError(t, err)
	require.Len(t, c.Policies, 1)
	at := func(line int) Position { return Position{File: "composite.yaml", Line: line} }
	assert.Equal(t, ViolationPolicy{
		Name: "felt", Window: 5 * time.Minute, ConsecutiveWindows: 1, OnNoData: NoDataHold, GroupBy: []string{"tenant"},
		When:     Condition{SLO: "chat-experience", IDs: []string{"llm:chat:chat-experience:composite"}},
		Severity: "page",
		Targets: []AlertNotificationTarget{
			{Name: "on-call", Target: "pagerduty", Position: at(2)}, {Name: "mail", Target: "email", Position: at(71)},
		},
		Position: at(62),
	}, c.Policies[0])
}
