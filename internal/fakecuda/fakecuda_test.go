// SPDX-License-Identifier: Apache-2.0

package fakecuda

import (
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Guarantees: a probe on any function of the fakes need not single-step.
func TestEveryFunctionStartsWithAPush(t *testing.T) {
	first := map[string]string{"amd64": "push   %rbp", "arm64": "stp\tx29, x30"}[runtime.GOARCH]
	require.NotEmpty(t, first, runtime.GOARCH)
	b, err := Build(t.TempDir())
	require.NoError(t, err)
	for _, library := range []string{b.Runtime, b.Driver, b.StaticWorkload} {
		out, err := exec.Command("objdump", "-d", "--no-show-raw-insn", library).Output()
		require.NoError(t, err)
		lines := strings.Split(string(out), "\n")
		functions := 0
		for i, line := range lines {
			if _, name, ok := strings.Cut(line, "<cu"); ok && strings.HasSuffix(name, ">:") && !strings.Contains(name, "@plt") {
				functions++
				assert.Contains(t, lines[i+1], first, "%s: %s", library, name)
			}
		}
		assert.Greater(t, functions, 10, library)
	}
}

// Guarantees: what an application can do wrong is answered as CUDA does, with and without a driver.
func TestTheFakesAnswerAsCUDADoes(t *testing.T) {
	b, err := Build(t.TempDir())
	require.NoError(t, err)
	f := func(program string, load []string, runtime bool) {
		t.Helper()
		w, err := Run(exec.Command(program))
		require.NoError(t, err)
		defer func() { assert.NoError(t, w.Close()) }()
		do := func(command, want string) {
			t.Helper()
			got, err := w.Do(command)
			require.NoError(t, err)
			assert.Equal(t, want, got, command)
		}
		for _, library := range load {
			do("load "+library, "")
		}
		alloc, free := "cuMemAlloc_v2", "cuMemFree_v2"
		if runtime {
			alloc, free = "cudaMalloc", "cudaFree"
		}
		do("alloc "+alloc+" 10 4096", "10 0")
		do("free "+free+" 5", "5 0")
		do("refree "+free+" 1", "0 1")
		do("null "+free, "1 0")
		do("unknown "+free+" 2", "2 0")
		do(fmt.Sprintf("alloc %s 1 %d", alloc, int64(Capacity)), "0 1")
		do("free "+free+" 5", "5 0")
		do(fmt.Sprintf("alloc %s 1 %d", alloc, int64(Capacity)), "1 0")
		do("alloc "+alloc+" 1 1", "0 1")
		do("free "+free+" 1", "1 0")
		do("churn "+alloc+" "+free+" 100 4096 4", "400 0")
		_, err = w.Do("alloc cudaMallocArray 1 1")
		assert.ErrorContains(t, err, "no function")
	}
	f(b.Workload, []string{b.Runtime}, true)
	f(b.Workload, []string{b.Driver}, false)
	f(b.StaticWorkload, nil, true)
}

// Guarantees: memory by a handle lives until nobody holds it and it is mapped nowhere, and whole mappings alone are unmapped.
func TestMemoryLivesAsLongAsItIsMapped(t *testing.T) {
	b, err := Build(t.TempDir())
	require.NoError(t, err)
	w, err := Run(exec.Command(b.Workload))
	require.NoError(t, err)
	defer func() { assert.NoError(t, w.Close()) }()
	do := func(command, want string) {
		t.Helper()
		got, err := w.Do(command)
		require.NoError(t, err)
		assert.Equal(t, want, got, command)
	}
	const most, none = "alloc cuMemCreate 1 85899345920", "0 1"
	do("load "+b.Driver, "")
	do("alloc cuMemCreate 2 4194304", "2 0")
	do("map cuMemMap 2 4194304", "2 0")
	do("free cuMemRelease 2", "2 0")
	do("alloc cuMemRetainAllocationHandle 1 105553116266496", "1 0")
	do("unmap cuMemUnmap 1 2097152", "0 1")
	do("unmap cuMemUnmap 1 8388608", "1 0")
	do(most, none)
	do("free cuMemRelease 1", "1 0")
	do(most, "1 0")
}
