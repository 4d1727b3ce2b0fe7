// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/otelcol-llm/otelcol-llm/internal/fakecuda"
)

// counts checks that what a workload does is counted, exactly.
func (r *rig) counts(w *fakecuda.Workload, alloc, free string) {
	r.Helper()
	r.do(w, "alloc "+alloc+" 1000 4096", "1000 0")
	r.do(w, "free "+free+" 400", "400 0")
	p := r.process(w)
	assert.Equal(r, []uint64{600 * 4096, 1000, 400, 0}, []uint64{p.Live, p.Allocations, p.Frees, p.UnknownFrees})
	assert.Equal(r, Drops{}, r.Drops())
}

// copyTo copies files into a folder, as files with inodes of their own.
func copyTo(t *testing.T, dir string, files ...string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(file)), text, 0o755))
	}
}

// Guarantees: a program with the runtime linked in is found by its symbols, with a driver below it and without.
func TestAStaticRuntimeIsFoundByItsSymbols(t *testing.T) {
	r := newRig(t, Options{})
	alone := r.start(r.StaticWorkload)
	got := r.scan()
	assert.Equal(t, []int{1, 1}, []int{got.Files, got.Processes})
	r.counts(alone, "cudaMalloc", "cudaFree")

	cmd := exec.Command(r.StaticWorkload)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+r.Dir)
	over := r.run(cmd)
	r.do(over, "null cudaFree", "1 0") // loads the driver
	assert.Equal(t, 2, r.scan().Files)
	r.counts(over, "cudaMalloc", "cudaFree")
	r.counts(r.start(r.StaticWorkload), "cudaMallocManaged", "cudaFreeAsync")
}

// Guarantees: a stripped program has no symbols to be found by, and its driver is what counts.
func TestAStrippedProgramIsCountedByItsDriver(t *testing.T) {
	r := newRig(t, Options{})
	stripped := filepath.Join(t.TempDir(), "stripped")
	out, err := exec.Command("strip", "-o", stripped, r.StaticWorkload).CombinedOutput()
	require.NoError(t, err, string(out))
	cmd := exec.Command(stripped)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+r.Dir)
	w := r.run(cmd)
	r.do(w, "null cudaFree", "1 0")
	assert.Equal(t, 1, r.scan().Files)
	r.counts(w, "cudaMalloc", "cudaFree")
}

// Guarantees: further libraries are found by the pattern, of a name or a path.
func TestALibraryThatWasNamedIsProbed(t *testing.T) {
	built, err := fakes()
	require.NoError(t, err)
	dir := t.TempDir()
	copyTo(t, dir, built.Runtime)
	torch := filepath.Join(dir, "libtorch_cuda.so")
	require.NoError(t, os.Rename(filepath.Join(dir, "libcudart.so.12"), torch))
	f := func(pattern string, want int) {
		t.Helper()
		opts := Options{}
		if pattern != "" {
			opts.Libraries = []string{pattern}
		}
		r := newRig(t, opts)
		r.start(r.Workload, torch)
		assert.Equal(t, want, r.scan().Files, pattern)
	}
	f("", 0)
	f("libtorch_cuda.so*", 1)
	f(filepath.Dir(dir)+"/*/libtorch_*", 1)
	f("libtorch.so", 0)
	_, err = Start(Options{Libraries: []string{"lib[.so"}})
	assert.ErrorContains(t, err, `library "lib[.so": syntax error in pattern`)
}

// Scenario: a library is bind-mounted at a path that only another mount namespace has.
// Guarantees: it is probed there.
func TestAnotherMountNamespace(t *testing.T) {
	r := newRig(t, Options{})
	hidden, at := t.TempDir(), t.TempDir()
	copyTo(t, hidden, r.Runtime, r.Driver)
	w := r.run(exec.Command("unshare", "-m", "sh", "-ec", "mount --bind "+hidden+" "+at+"; exec "+r.Workload), at+"/libcudart.so.12", at+"/libcuda.so.1")
	require.NoFileExists(t, at+"/libcudart.so.12", "it is hidden from here")
	assert.Equal(t, 2, r.scan().Files)
	r.counts(w, "cudaMalloc", "cudaFree")
}

// Scenario: containers run from overlays over one image, and come and go.
// Guarantees: all are probed, a call counts once though its file has an inode in each overlay, and soon has one probe.
func TestContainersOverOneImage(t *testing.T) {
	r := newRig(t, Options{Launches: true})
	base := t.TempDir()
	// A file system of its own: /tmp may be an overlay, which cannot be a layer of another one everywhere.
	require.NoError(t, unix.Mount("tmpfs", base, "tmpfs", 0, ""))
	t.Cleanup(func() { _ = unix.Unmount(base, unix.MNT_DETACH) })
	image := filepath.Join(base, "image")
	copyTo(t, filepath.Join(image, "usr/local/cuda"), r.Runtime, r.Driver, r.Workload)
	copyLibc(t, image, r.Workload)
	container := func(name string) *fakecuda.Workload {
		root, upper, work := filepath.Join(base, name, "root"), filepath.Join(base, name, "upper"), filepath.Join(base, name, "work")
		for _, dir := range []string{root, upper, work} {
			require.NoError(t, os.MkdirAll(dir, 0o755))
		}
		require.NoError(t, unix.Mount("overlay", root, "overlay", 0, "lowerdir="+image+",upperdir="+upper+",workdir="+work))
		t.Cleanup(func() { _ = unix.Unmount(root, unix.MNT_DETACH) })
		cmd := exec.Command("/usr/local/cuda/workload")
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
		cmd.Dir = "/"
		return r.run(cmd, "/usr/local/cuda/libcudart.so.12", "/usr/local/cuda/libcuda.so.1")
	}
	rounds := map[*fakecuda.Workload]uint64{}
	use := func(all ...*fakecuda.Workload) {
		t.Helper()
		for _, w := range all {
			rounds[w]++
			r.do(w, "alloc cudaMalloc 1000 4096", "1000 0")
			r.do(w, "free cudaFree 400", "400 0")
			r.do(w, "churn cuMemCreate cuMemRelease 1000 4096 4", "4000 0")
			r.do(w, "launch cudaLaunchKernel 100", "100 0")
			p := r.process(w)
			n := rounds[w]
			assert.Equal(t, []uint64{n * 600 * 4096, n * 5000, n * 4400, n * 100, 0}, []uint64{p.Live, p.Allocations, p.Frees, p.Launches, p.UnknownFrees})
		}
	}
	a, b := container("a"), container("b")
	assert.Equal(t, 4, r.scan().Files, "each library is two files")
	use(a, b)
	got := r.scan()
	assert.Equal(t, []int{2, 2, 2}, []int{got.Files, got.Processes, len(r.scanner.processes)}, "which are one")
	use(a, b)
	c := container("c")
	assert.Equal(t, 4, r.scan().Files)
	use(a, b, c)
	assert.Equal(t, 2, r.scan().Files)
	use(a, b, c)
	require.NoError(t, a.Kill())
	r.scan()
	use(b, c)
	r.scan()
	use(b, c)
	require.NoError(t, b.Kill())
	got = r.scan()
	assert.Equal(t, 1, got.Processes)
	use(c)
	assert.Equal(t, 2, r.scan().Files)
	require.NoError(t, c.Kill())
	got = r.scan()
	assert.Equal(t, []int{0, 0}, []int{got.Files, got.Processes})
	assert.Empty(t, r.scanner.files)
	assert.Equal(t, Drops{}, r.Drops())
}

// copyLibc copies what a program is linked against.
func copyLibc(t *testing.T, root, program string) {
	t.Helper()
	out, err := exec.Command("ldd", program).Output()
	require.NoError(t, err)
	for _, word := range strings.Fields(string(out)) {
		if strings.HasPrefix(word, "/") {
			copyTo(t, filepath.Join(root, filepath.Dir(word)), word)
		}
	}
}

// Guarantees: a file is probed once, by however many names processes know it.
func TestTwoPathsToOneFileAttachOnce(t *testing.T) {
	r := newRig(t, Options{})
	dir := t.TempDir()
	copyTo(t, dir, r.Driver)
	require.NoError(t, os.Link(dir+"/libcuda.so.1", dir+"/libcuda.so.535"))
	require.NoError(t, os.Symlink("libcuda.so.1", dir+"/libcuda.so"))
	bound := filepath.Join(t.TempDir(), "libcuda.so.bound")
	require.NoError(t, os.WriteFile(bound, nil, 0o600))
	require.NoError(t, unix.Mount(dir+"/libcuda.so.1", bound, "", unix.MS_BIND, ""))
	t.Cleanup(func() { assert.NoError(t, unix.Unmount(bound, unix.MNT_DETACH)) })
	var all []*fakecuda.Workload
	for _, path := range []string{dir + "/libcuda.so.1", dir + "/libcuda.so.535", dir + "/libcuda.so", bound} {
		all = append(all, r.start(r.Workload, path))
	}
	got := r.scan()
	assert.Equal(t, []int{1, 1, 4}, []int{got.Files, got.Attached, got.Processes})
	for _, w := range all {
		r.counts(w, "cuMemAlloc_v2", "cuMemFree_v2")
	}
}

// Guarantees: a file that was deleted or replaced after it was mapped is probed as it was.
func TestADeletedLibraryIsProbed(t *testing.T) {
	r := newRig(t, Options{})
	dir := t.TempDir()
	copyTo(t, dir, r.Driver)
	w := r.start(r.Workload, dir+"/libcuda.so.1")
	require.NoError(t, os.Remove(dir+"/libcuda.so.1"))
	assert.Equal(t, 1, r.scan().Files)
	r.counts(w, "cuMemAlloc_v2", "cuMemFree_v2")
}

// Guarantees: a file that says it is CUDA and is not does no harm, and is said once.
func TestAFileThatIsNoLibraryIsReported(t *testing.T) {
	var said []string
	root := t.TempDir()
	require.NoError(t, os.Symlink("/proc/self", filepath.Join(root, strconv.Itoa(os.Getpid()))))
	r := newRig(t, Options{ProcRoot: root, Log: func(format string, _ ...any) { said = append(said, format) }})
	path := filepath.Join(t.TempDir(), "libcuda.so.1")
	require.NoError(t, os.WriteFile(path, make([]byte, 8192), 0o755))
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	mapped, err := unix.Mmap(int(file.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
	require.NoError(t, err)
	defer func() { _ = unix.Munmap(mapped) }()
	for range 5 {
		got, err := r.Scan()
		require.NoError(t, err)
		assert.Equal(t, 1, got.Failed)
		assert.ErrorContains(t, got.Err, path)
	}
	assert.Len(t, said, 1)
}
