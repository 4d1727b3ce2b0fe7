// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu"
	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu/fakegputest"
	"github.com/otelcol-llm/otelcol-llm/receiver/nvidiagpureceiver/internal/autosource"
)

// dcgmLibrary is the fake of this process: it has the same scenario as the fake NVML.
var dcgmLibrary = sync.OnceValues(func() (string, error) {
	return fakegpu.BuildDCGM(filepath.Dir(os.Getenv(fakegpu.Variable)))
})

// fakeRig is an engine on the fakes.
type fakeRig struct {
	*rig
	world *fakegpu.Scenario
}

// onFakes is a rig whose source is the real one, on fakes of the libraries. When the test ends, nothing may be open.
func onFakes(t *testing.T, world *fakegpu.Scenario, configure func(*Config)) *fakeRig {
	t.Helper()
	fakegputest.Show(t, world)
	dcgm, err := dcgmLibrary()
	require.NoError(t, err)
	t.Cleanup(func() {
		stats, err := fakegpu.DCGMStats(os.Getenv(fakegpu.Variable))
		if !os.IsNotExist(err) {
			require.NoError(t, err)
			assert.Zero(t, stats.Initialised+stats.EventSets+stats.Invalid+stats.Uninitialised, "%+v", stats)
		}
	})
	r := newRig(t, nil, func(cfg *Config) {
		cfg.Source, cfg.NVMLLibrary = sourceNVML, fakegputest.Library()
		if configure != nil {
			configure(cfg)
		}
		if cfg.Source != sourceNVML {
			cfg.DCGMLibrary = dcgm
		}
		if cfg.Source == sourceDCGM {
			cfg.NVMLLibrary = ""
		}
	})
	r.engine.source = newSource(r.cfg, r.log)
	if both, ok := r.engine.source.(*autosource.Source); ok {
		both.Patience = time.Hour // these fakes answer, however slow the machine is
	}
	t.Cleanup(func() { assert.NoError(t, r.close()) })
	return &fakeRig{r, world}
}

// change changes the world while the engine runs.
func (r *fakeRig) change(how func(*fakegpu.Scenario)) {
	r.t.Helper()
	how(r.world)
	fakegputest.Change(r.t, r.world)
}

// eventually scrapes until there are so many events: the driver tells of them in its own time.
func (r *fakeRig) eventually(events int) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		r.scrape()
		return len(r.events()) >= events
	}, time.Minute, 10*time.Millisecond)
}

func everywhere(function string, code int) fakegpu.Rule {
	return fakegpu.Rule{Function: function, GPU: fakegpu.All, Instance: fakegpu.All, Return: code}
}
