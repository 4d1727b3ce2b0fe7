// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/lightstep/go-expohisto/mapping/exponent"
	"github.com/lightstep/go-expohisto/mapping/logarithm"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Guarantees: what runs in the kernel was compiled from what is read here.
func TestTheCompiledProgramsAreThoseOfTheSource(t *testing.T) {
	sums, err := os.ReadFile("bpf/SHA256SUMS")
	require.NoError(t, err)
	want := ""
	for _, file := range []string{"bpf/probe.c", "bpf/kernel.h"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		want += fmt.Sprintf("%x  %s\n", sha256.Sum256(text), file)
	}
	assert.Equal(t, want, string(sums), "run make bpf")
}

func TestExecutableMappingsOfFilesAreFound(t *testing.T) {
	text := `55d0c0000000-55d0c0001000 r--p 00000000 fd:01 77                         /usr/bin/python3.11
55d0c0001000-55d0c0002000 r-xp 00001000 fd:01 77                         /usr/bin/python3.11
7f0000000000-7f0000001000 rwxp 00000000 00:00 0
7f0000001000-7f0000002000 r-xp 00000000 00:2e 18446744073709551615       /opt/a b/libcuda.so.1 (deleted)
7f0000002000-7f0000003000 r-xp 00000000 00:01 9                          /memfd:jit (deleted)
7ffc00000000-7ffc00001000 r-xp 00000000 00:00 0                          [vdso]
7f0000003000-7f0000004000 r-xs 00000000 103:0a 12 /x`
	var got []string
	parseMaps([]byte(text), func(m mapping) {
		got = append(got, fmt.Sprintf("%s %x:%x %d %s", m.span, m.file.major, m.file.minor, m.file.inode, m.path))
	})
	assert.Equal(t, []string{
		"55d0c0001000-55d0c0002000 fd:1 77 /usr/bin/python3.11",
		"7f0000001000-7f0000002000 0:2e 18446744073709551615 /opt/a b/libcuda.so.1",
		"7f0000002000-7f0000003000 0:1 9 /memfd:jit",
		"7f0000003000-7f0000004000 103:a 12 /x",
	}, got)
}

func TestLibrariesAreToldByTheirNames(t *testing.T) {
	s := scanner{patterns: append([]string{"libtorch_cuda.so*", "/opt/*/libmine.so"}, libraries...)}
	f := func(name string, library, executable bool) {
		t.Helper()
		gotLibrary, gotExecutable := s.kindOf([]byte(name))
		assert.Equal(t, []bool{library, executable}, []bool{gotLibrary, gotExecutable}, name)
	}
	f("/usr/lib/x86_64-linux-gnu/libcuda.so.535.104.05", true, false)
	f("/usr/local/cuda/lib64/libcudart.so", true, false)
	f("/venv/lib/python3.11/site-packages/torch.libs/libcudart-d0da41ae.so.11.0", true, false)
	f("/venv/lib/libtorch_cuda.so", true, false)
	f("/opt/x/libmine.so", true, false)
	f("/usr/libmine.so", false, false)
	f("/usr/lib/x86_64-linux-gnu/libcudadebugger.so.1", false, false)
	f("/usr/lib/x86_64-linux-gnu/libc.so.6", false, false)
	f("/usr/bin/python3.11", false, true)
	f("/app/server.sock.d/server", false, true)
	f("/memfd:x", false, false)
	f("/dev/nvidia0", false, false)
}

// Guarantees: all that is in a file is found, and where the linker says that it is.
func TestFunctionsAreWhereTheSymbolsSay(t *testing.T) {
	built, err := fakes()
	require.NoError(t, err)
	f := func(path string, want int) {
		t.Helper()
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		got, err := functionsIn(bytes.NewReader(text))
		require.NoError(t, err)
		assert.Len(t, got, want, path)
		parsed, err := elf.NewFile(bytes.NewReader(text))
		require.NoError(t, err)
		symbols, err := parsed.DynamicSymbols()
		require.NoError(t, err)
		static, err := parsed.Symbols()
		require.NoError(t, err)
		at := map[uint64]kind{}
		for _, s := range append(symbols, static...) {
			if k, ok := functions[s.Name]; ok && s.Section != elf.SHN_UNDEF {
				offset, ok := offsetOf(parsed, s.Value)
				require.True(t, ok)
				at[offset] = k
			}
		}
		for _, x := range got {
			assert.Equal(t, at[x.offset], x.kind)
		}
		assert.Len(t, at, want)
	}
	f(built.Runtime, 7+2+1+2)
	f(built.Driver, 7+3+1+2+4+6)
	f(built.StaticWorkload, 7+2+1+2)
	f(built.Workload, 0)
}

// Guarantees: files of others, which may be anything, cost neither a crash nor more memory than they deserve.
func FuzzFunctionsIn(f *testing.F) {
	built, err := fakes()
	require.NoError(f, err)
	text, err := os.ReadFile(built.Driver)
	require.NoError(f, err)
	f.Add(text)
	f.Add(text[:len(text)/2])
	f.Add([]byte("\x7fELF"))
	f.Fuzz(func(t *testing.T, text []byte) {
		found, err := functionsIn(bytes.NewReader(text))
		if err != nil && found != nil {
			t.Fatal("both functions and an error")
		}
	})
}

// Guarantees: the buckets are those of OTLP at the scale and offset that are said.
func TestBucketsAreExponentialHistograms(t *testing.T) {
	mapping, err := logarithm.NewMapping(LaunchScale)
	require.NoError(t, err)
	bounds := launchBounds()
	for i := 1; i < LaunchBuckets; i++ {
		lower, err := mapping.LowerBoundary(int32(LaunchOffset + i))
		require.NoError(t, err)
		assert.InDelta(t, lower*1e9, float64(bounds[i]), 1.0001, "bucket %d", i)
	}
	assert.Equal(t, uint64(math.MaxUint64), bounds[LaunchBuckets])
	assert.Equal(t, uint64(1e9), bounds[-LaunchOffset], "a second is in the bucket that it ends")

	r := newRig(t, Options{MaxEntries: 1000})
	w := r.start(r.Workload, r.Driver)
	r.scan()
	sizes, err := exponent.NewMapping(SizeScale)
	require.NoError(t, err)
	want := [SizeBuckets]uint64{}
	for _, size := range []uint64{1, 2, 3, 4, 5, 511, 512, 513, 1 << 20, 1<<20 + 1, 3 << 30, 1 << 34} {
		r.do(w, fmt.Sprintf("alloc cuMemAlloc_v2 1 %d", size), "1 0")
		want[sizes.MapToIndex(float64(size))-SizeOffset]++
	}
	assert.Equal(t, want, r.process(w).Sizes)
}
