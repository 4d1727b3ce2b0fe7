// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

func TestEventsInAnExcludingMaintenanceDoNotCount(t *testing.T) {
	const id = "llm:chat:ttft:p95"
	begin := time.Unix(1_700_002_800, 0).UTC()
	catalog := &openslo.Catalog{Maintenance: []openslo.MaintenanceWindow{
		{Name: "out", Effect: openslo.EffectExclude, SLOs: []string{id}, Start: begin.Add(10 * time.Minute), Duration: 5 * time.Minute},
		{Name: "quiet", Effect: openslo.EffectSilence, SLOs: []string{id}, Start: begin.Add(20 * time.Minute), Duration: 5 * time.Minute},
		{Name: "others", Effect: openslo.EffectExclude, SLOs: []string{"other"}, Start: begin, Duration: time.Hour},
	}}
	e := exclusionsOf(catalog, id)
	f := func(after time.Duration, want bool) {
		t.Helper()
		at := begin.Add(after).UnixNano()
		assert.Equal(t, want, e.cover(at))
		assert.Equal(t, want, e.cover(at), "asked again")
	}
	f(10*time.Minute-1, false)
	f(10*time.Minute, true)
	f(15*time.Minute-1, true)
	f(15*time.Minute, false)
	f(21*time.Minute, false)
	f(0, false)
}
