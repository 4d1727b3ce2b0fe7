// SPDX-License-Identifier: Apache-2.0

package heat

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/baseline"
)

// Scenario: a composite of a latency and a ratio. In one region both have events, in another only the first, and later both are
// gone there as well.
// Guarantees: it has a cell where both have, which is the mean of their shares, and drifts when that does; where a part is missing
// nothing is said, and where it went missing that is said once.
func TestACompositeHasCellsWhereAllItsPartsHave(t *testing.T) {
	var told []string
	m := mapOf(t, &told)
	eu, us := []string{"eu", "v1"}, []string{"us", "v1"}
	for i := range int64(12) {
		at := i * minute
		for k := range 40 {
			v := 0.5
			if k < 2 || i >= 6 && k < 20 {
				v = 2 // worse than the objective of 1
			}
			m.take(event{0, us, at, v})
			if i < 9 {
				m.take(event{0, eu, at, v})
			}
			if i < 9 {
				m.take(event{1, eu, at, 1.5}) // ten requests, one of them bad
			}
		}
		m.Advance(at + minute)
	}
	c := m.promises[2].cells[keyOf(eu)]
	require.NotNil(t, c)
	assert.Nil(t, m.promises[2].cells[keyOf(us)])
	want := map[int64]float64{1: 0.75*38/40 + 0.25*0.9, 6: 0.75*38/40 + 0.25*0.9, 7: 0.75*20/40 + 0.25*0.9}
	seen := map[int64]string{}
	for _, line := range told {
		for end := range int64(13) {
			var rest string
			if n, _ := fmt.Sscanf(line, fmt.Sprintf("composite%v %d %%s", eu, end*minute), &rest); n == 1 {
				seen[end] = line
			}
		}
	}
	assert.Len(t, seen, 10, "nine windows, and once that there was nothing")
	for end, value := range want {
		assert.Contains(t, seen[end], rounded(value), "window %d", end)
	}
	assert.Contains(t, seen[6], baseline.OK.String())
	assert.NotContains(t, seen[8], baseline.OK.String(), "two windows in a row are worse")
	assert.Contains(t, seen[10], baseline.InsufficientData.String())
	assert.True(t, c.Result().Empty)
	assert.False(t, math.IsNaN(c.Result().Static))
}
