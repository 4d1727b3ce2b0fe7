// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"sort"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/engine"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/scenario"
)

// p95 is exact, from the sorted values.
func p95(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sort.Float64s(values)
	return values[int(0.95*float64(len(values)-1))]
}

func TestExampleShowsItsFaultWhereItIsAndNowhereElse(t *testing.T) {
	// Scenario: the example of the README; v2 in eu-west-1 is slow from 10 to 40
	// simulated minutes. An objective of 0.75 s for the first token is a bucket bound.
	// Guarantees: for every replica the P95 is below 0.5 s before the fault; during
	// it, it is above 1 s for the two replicas that match, and below 0.5 s for the rest.
	s, err := scenario.Load("../../testdata/example.yaml", 1)
	require.NoError(t, err)
	require.Len(t, s.Replicas, 8)
	source, _, err := s.Source(1)
	require.NoError(t, err)

	before, during := map[string][]float64{}, map[string][]float64{}
	f := New(s, source, 1, func(rep *Replica, r engine.Record) {
		id := rep.Labels[scenario.InstanceLabel]
		ttft := (r.FirstToken - r.Arrival).Seconds()
		switch {
		case r.FirstToken < 10*time.Minute:
			before[id] = append(before[id], ttft)
		case r.Arrival > 10*time.Minute && r.Arrival < 40*time.Minute:
			during[id] = append(during[id], ttft)
		}
	})
	f.AdvanceTo(45 * time.Minute)
	for _, rep := range f.Replicas {
		id := rep.Labels[scenario.InstanceLabel]
		healthy, later := p95(before[id]), p95(during[id])
		t.Logf("%s %v: before %.3f s (n=%d), during %.3f s (n=%d)", id, rep.Labels, healthy, len(before[id]), later, len(during[id]))
		assert.Less(t, healthy, 0.5, id)
		if s.Faults[0].Matches(rep.Labels) {
			assert.Greater(t, later, 1.0, id)
		} else {
			assert.Less(t, later, 0.5, id)
		}
	}
}
