// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu"
	"github.com/otelcol-llm/otelcol-llm/internal/nvml"
)

// simulated are made once, since a process can have one NVML.
var simulated = sync.OnceValues(func() (*gpus, error) { return newGPUs(folder) })

var folder string

func TestMain(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "demo-test-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

// Guarantees: each replica has a GPU that says that it is simulated, is as busy as the replica, and whose process holds what the
// replica leaks besides; it is shown once a second, and fits however long it leaks.
func TestReplicasHaveGPUsThatShowWhatTheyLeak(t *testing.T) {
	made, err := simulated()
	require.NoError(t, err)
	g := &gpus{library: made.library, scenario: made.scenario}
	t.Setenv(fakegpu.Variable, g.scenario)
	replicas := make([]replica, 2)
	replicas[0].Labels = map[string]string{"device.type": "h100"}
	replicas[1].Labels = map[string]string{"device.type": "a100", "process.pid": "4194201"}
	replicas[1].Requests.Running = full / 2
	now := time.Unix(1_700_000_000, 0)
	require.NoError(t, g.show(nil, now))
	require.NoError(t, g.show(replicas, now))

	l, err := nvml.Open(g.library)
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	n, _ := l.Count()
	require.Equal(t, 2, n)
	d, o := l.Device(1)
	require.Equal(t, nvml.OK, o)
	name, _ := d.Name()
	assert.Equal(t, "simulated a100", name)
	busy, _, _ := d.Utilization()
	assert.Equal(t, uint32(50), busy)
	pid := uint32(4194201) // as its metrics say
	leaked := func() uint64 {
		m, o := d.Memory()
		require.Equal(t, nvml.OK, o)
		assert.LessOrEqual(t, m.Used+m.Reserved, m.Total)
		list, sane, o := d.Processes(nil)
		require.Equal(t, nvml.OK, o)
		require.True(t, sane)
		require.Len(t, list, 1)
		assert.Equal(t, m.Used, list[0].Memory, "none is nobody's")
		assert.Equal(t, pid, list[0].PID)
		return m.Used - 40*gibi
	}
	assert.Zero(t, leaked())
	replicas[1].LeakedBytes = 5 * gibi
	require.NoError(t, g.show(replicas, now))
	assert.Zero(t, leaked(), "not before a second is over")
	assert.Equal(t, map[string]string{"device.type": "a100"}, g.whose(4194201))
	assert.Nil(t, g.whose(4194201+further), "it was not started again")
	require.NoError(t, g.show(replicas, now.Add(time.Second)))
	assert.Equal(t, uint64(5*gibi), leaked())
	replicas[1].LeakedBytes = 1000 * gibi
	require.NoError(t, g.show(replicas, now.Add(2*time.Second)))
	assert.Greater(t, leaked(), uint64(30*gibi))
	replicas[1].LeakedBytes, pid = 0, pid+further
	require.NoError(t, g.show(replicas, now.Add(3*time.Second)))
	assert.Zero(t, leaked(), "it was started again")
}
