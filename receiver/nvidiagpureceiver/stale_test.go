// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/zap/zapcore"

	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu"
	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
)

// Scenario: a host engine renews nothing any more, for long. Guarantees: nothing is told, the status says why, and the log says
// it once and not at each interval; when it renews its values, they are told.
func TestAHostEngineThatRenewsNothingIsToldOnce(t *testing.T) {
	r := onFakes(t, fakegpu.H100(), func(cfg *Config) { cfg.Source, cfg.DCGMEndpoint = sourceDCGM, "localhost:5555" })
	r.scrape()
	power := r.series("hw.power")
	assert.Len(t, power, 1)
	r.change(func(w *fakegpu.Scenario) {
		var has gpu.Set
		for p := range gpu.DevicePoints {
			if id := gpu.Rows[p].DCGM.ID; id != 0 && !has.Has(p) {
				w.Rules = append(w.Rules, everywhere(fmt.Sprintf("%s%d", fakegpu.RuleField, id), fakegpu.NotRenewed))
			}
			for other := range gpu.DevicePoints { // of the same field
				if gpu.Rows[other].DCGM.ID == gpu.Rows[p].DCGM.ID {
					has.Add(other)
				}
			}
		}
	})
	r.console.TakeAll()
	for range 20 {
		r.scrape()
		assert.NotContains(t, r.series("hw.power"), power[0])
	}
	assert.Contains(t, r.health.Text(), "does not renew its values")
	warnings := 0
	for _, line := range r.console.TakeAll() {
		if line.Level >= zapcore.WarnLevel {
			warnings++
		}
	}
	assert.Equal(t, 1, warnings)
	r.change(func(w *fakegpu.Scenario) { w.Rules = nil })
	r.scrape()
	assert.Equal(t, power, r.series("hw.power"))
	assert.Empty(t, r.health.Text())
}
