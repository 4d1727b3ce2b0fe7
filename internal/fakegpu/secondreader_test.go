// SPDX-License-Identifier: Apache-2.0

package fakegpu

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// bindings are NVIDIA's own for Python: another reader of the same library, by other people.
const bindings = "nvidia-ml-py==13.615.71"

// installed is a folder with the bindings. It is kept in .tools, as other tools are, and needs python3 with pip once.
func installed(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "..", ".tools", bindings))
	require.NoError(t, err)
	if _, err := os.Stat(filepath.Join(dir, "pynvml.py")); err == nil {
		return dir
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(dir), 0o755))
	draft, err := os.MkdirTemp(filepath.Dir(dir), "pip")
	require.NoError(t, err)
	defer func() { _ = os.RemoveAll(draft) }()
	out, err := exec.Command("python3", "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check", "--target", draft, bindings).CombinedOutput()
	require.NoError(t, err, "the second reader needs python3 with pip:\n%s", out)
	if err := os.Rename(draft, dir); err != nil {
		_, err = os.Stat(filepath.Join(dir, "pynvml.py")) // another test was faster
		require.NoError(t, err)
	}
	return dir
}

// secondReader is the Python program on a fake of its own. Read returns what it has printed since.
type secondReader struct {
	t      *testing.T
	lines  *bufio.Scanner
	stdin  func()
	result map[string]any
}

func startSecondReader(t *testing.T, s *Scenario) (r *secondReader, scenario string) {
	t.Helper()
	dir := t.TempDir()
	library, err := Build(dir, s.Missing...)
	require.NoError(t, err)
	scenario = filepath.Join(dir, "scenario")
	require.NoError(t, s.Write(scenario))
	cmd := exec.Command("python3", filepath.Join("testdata", "second_reader.py"))
	cmd.Env = append(os.Environ(), "PYTHONPATH="+installed(t), "LD_LIBRARY_PATH="+filepath.Dir(library), Variable+"="+scenario, "PYTHONDONTWRITEBYTECODE=1")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = stdin.Close()
		require.NoError(t, cmd.Wait())
	})
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<20)
	return &secondReader{t: t, lines: lines, stdin: func() { _, _ = stdin.Write([]byte("\n")) }}, scenario
}

func (r *secondReader) read() {
	r.t.Helper()
	require.True(r.t, r.lines.Scan(), "the second reader has ended early")
	require.NoError(r.t, json.Unmarshal(r.lines.Bytes(), &r.result))
}

// is compares by JSON, so that numbers are numbers.
func (r *secondReader) is(name string, want any) {
	r.t.Helper()
	text, err := json.Marshal(want)
	require.NoError(r.t, err)
	got, err := json.Marshal(r.result[name])
	require.NoError(r.t, err)
	assert.JSONEq(r.t, string(text), string(got), name)
}

type list = []any

const noInstance = 0xFFFFFFFF

// Guarantees: NVIDIA's own bindings read from the fake what the scenario says, in structures of the right layout.
func TestASecondReaderReadsTheSameFromTheFake(t *testing.T) {
	world := H100()
	r, path := startSecondReader(t, world)
	r.read()
	for name, want := range map[string]any{
		"before init": "error 1", "driver": "590.48.01", "nvml": "13.590.48.01", "cuda": 13010, "count": 1, "beyond": "error 2", "by uuid": 0,
		"name": "NVIDIA H100 80GB HBM3", "uuid": "GPU-00000000-0000-0000-0000-000000000000", "serial": "0000000000000", "vbios": "96.00.A5.00.01",
		"minor": 0, "architecture": 9, "power": 631950, "limit": 700000, "limits": list{200000, 700000}, "energy": 123456789, "fan": "error 3", "margin": 26,
		"reasons": 0, "throttle": 0, "replay": 9, "remapped": list{0, 0, 0, 0}, "mig": list{0, 0}, "max mig": 7, "encoder": list{0, 167000},
		"is mig": 0, "attributes": "error 3", "pci": list{"00000000:00:09.0", 0, 9, 0x233010DE},
		"memory 1": list{85520809984, 20780679168 + 502267904, 64237862912}, "memory 2": list{85520809984, 502267904, 20780679168, 64237862912},
		"wrong version": 25, "utilization": list{100, 11}, "temperature": 59, "temperature v": 59, "slowdown": "error 3", "clocks": list{1980, 1980, 2619, 1545},
		"ecc": list{0, 0, 0, 0}, "throughput": 6346, "retired": "error 3", "samples": list{100, 100},
		"fields":   list{54, 123456789, 9, 5 << 30, 6<<30/18 + 6<<30%18, 0, 0, 631950, 625680, 1 << 40, 3 << 40, "error 3", 0},
		"compute":  list{list{11327, 2690646016, noInstance, noInstance}, list{11328, 1616904192, noInstance, noInstance}, list{11345, 16452157440, noInstance, noInstance}},
		"graphics": list{}, "mps": list{}, "process utilization": list{list{11327, 10, 0}, list{11328, 5, 0}, list{11345, 85, 0}},
		"gpm support": 1, "gpm": list{97.25, 22.5, "error 3"}, "instances": list{"error 3", "error 3", "error 3", "error 3", "error 3", "error 3", "error 3"},
		"no event": "error 10",
	} {
		r.is(name, want)
	}
	r.is("compute 1", r.result["compute"])
	world.Xid(0, 79)
	require.NoError(t, world.Write(path))
	r.stdin()
	r.read()
	r.is("event", list{world.GPUs[0].UUID, 8, 79, noInstance})
	r.is("told once", "error 10")
	r.is("after shutdown", "error 1")
	stats, err := NVMLStats(path)
	require.NoError(t, err)
	assert.Zero(t, stats.EventSets+stats.GPMSamples+stats.Initialised+stats.Invalid+stats.Waiting)
	assert.Equal(t, uint64(1), stats.Uninitialised, "after the shutdown; before the opening the bindings answer by themselves")
	assert.Equal(t, uint64(1), stats.PcieThroughput)
}

// Guarantees: what the driver's documentation says a divided GPU and its instances do not have is refused.
func TestASecondReaderReadsInstancesFromTheFake(t *testing.T) {
	world := H100MIG()
	r, _ := startSecondReader(t, world)
	r.read()
	for name, want := range map[string]any{
		"mig": list{1, 1}, "utilization": "error 3", "encoder": "error 3", "remapped": "error 3", "power": 433780,
		"memory 2": list{85520809984, 502267904, 11665408000, 73353134080},
		"compute":  list{list{21180, 2407530496, 2, 0}, list{21181, 1333788672, 2, 0}, list{21198, 7847542784, 2, 0}}, "process utilization": "error 6",
	} {
		r.is(name, want)
	}
	instances := r.result["instances"].([]any)
	require.Len(t, instances, 7)
	r.result["first"], r.result["last"], r.result["none"] = instances[0], instances[3], instances[4]
	r.is("first", list{"MIG-00000000-0000-0000-0000-000000000000", "NVIDIA H100 80GB HBM3 MIG 3g.40gb", 2, 0, 40448 * mebi, 11091 * mebi, 60, world.GPUs[0].UUID, 3, list{3, 3, 3, 3}})
	r.is("last", list{"MIG-00000003-0000-0000-0000-000000000003", "NVIDIA H100 80GB HBM3 MIG 1g.10gb", 10, 0, 9984 * mebi, 9 * mebi, 16, world.GPUs[0].UUID, 0, list{3, 3, 3, 3}})
	r.is("none", "error 6")
}
