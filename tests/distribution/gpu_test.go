// SPDX-License-Identifier: Apache-2.0

package distribution

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu"
	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// Guarantees: on a machine without a GPU builtin:all-in-one says so in one line, and is healthy; when a driver comes, its GPUs
// are in the database, each by its own id.
func TestAllInOneReadsGPUsIfThereAreAny(t *testing.T) {
	ports, configs := allInOne(t)
	dir := t.TempDir()
	library, scenario := filepath.Join(dir, fakegpu.NVMLLibrary), filepath.Join(dir, "scenario")
	c := spawn.Start(t, spawn.Options{
		Configs: append(configs, "yaml:receivers::nvidia_gpu: {collection_interval: 1s, retry_interval: 500ms}"), Dir: dir,
		Env: []string{"NVML_LIBRARY=" + library, fakegpu.Variable + "=" + scenario},
	})
	c.WaitReady()
	c.WaitLog("no GPU is read; it is tried again", patience)
	get(t, fmt.Sprintf("http://localhost:%d/", ports["health"]))

	require.NoError(t, fakegpu.Server(2, 1, 1_000_000).Write(scenario))
	_, err := fakegpu.Build(dir)
	require.NoError(t, err)
	url := fmt.Sprintf("http://localhost:%d/api/v1/query?query=nvidia_gpu_memory_unattributed_bytes", ports["tsdb"])
	answer := ""
	assert.Eventually(t, func() bool {
		answer = get(t, url)
		return strings.Contains(answer, `"hw_id":"GPU-00000000-`) && strings.Contains(answer, `"hw_id":"GPU-00000001-`)
	}, patience, 100*time.Millisecond)
	assert.Contains(t, answer, `"hw_name":"GPU 1"`)
	assert.Zero(t, c.Stop())
	assert.LessOrEqual(t, strings.Count(c.Logs(), "no GPU is read"), 2, "once for the library, once for the driver")
}
