// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/guard"
	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/policy"
	"github.com/otelcol-llm/otelcol-llm/internal/fakecuda"
	"github.com/otelcol-llm/otelcol-llm/internal/workload"
	"github.com/otelcol-llm/otelcol-llm/internal/workload/workloadtest"
)

// fake is the number of the process that a /proc of text shows.
const fake = 4242

// text is what the kernel writes of a process that trains, in user 1000's session.
var text = map[string]string{
	"stat":          "4242 (a (strange) name) S 1 4242 4242 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 3 0 777 1 1 18446744073709551615 1 1 0 0 0 0 0 4096 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
	"status":        "Name:\ta (strange) name\nUmask:\t0022\nState:\tS (sleeping)\nUid:\t1000\t1000\t1000\t1000\n",
	"cmdline":       "python3\x00train.py\x00--name=keepme\x00",
	"cgroup":        "0::/user.slice/user-1000.slice/session-1.scope\n",
	"oom_score_adj": "0\n",
}

// write makes a /proc of these files, and of PID 1. A text that is not there leaves the file out; exe is a link.
func write(t require.TestingT, dir string, files map[string]string) {
	folder := filepath.Join(dir, strconv.Itoa(fake))
	require.NoError(t, os.RemoveAll(folder))
	require.NoError(t, os.MkdirAll(folder, 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "1"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "1", "cgroup"), []byte("0::/init.scope\n"), 0o600))
	for name, content := range files {
		path := filepath.Join(folder, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		if filepath.Base(name) == "stat" { // says where the arguments are, and that the environment is behind them
			line := files[strings.TrimSuffix(name, "stat")+"cmdline"]
			content = strings.Replace(content, " 0 0 0 0 0\n", fmt.Sprintf(" 1000 %d %[1]d 0 0\n", 1000+len(line)), 1)
		}
		if filepath.Base(name) == "exe" {
			require.NoError(t, os.Symlink(content, path))
		} else {
			require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		}
	}
}

// with is the text with changes; an empty one of "-" leaves the file out.
func with(changes ...string) map[string]string {
	files := map[string]string{"exe": "/usr/bin/python3.12"}
	for name, content := range text {
		files[name] = content
	}
	for i := 0; i < len(changes); i += 2 {
		files[changes[i]] = changes[i+1]
		if changes[i+1] == "-" {
			delete(files, changes[i])
		}
	}
	return files
}

func tableOf(t require.TestingT, dir string, r *workload.Resolver) *Table {
	table, err := NewTable(Options{Proc: dir, Resolver: r})
	require.NoError(t, err)
	return table
}

func resolver(t *testing.T) *workload.Resolver {
	t.Helper()
	r := workload.NewResolver(workload.Options{})
	t.Cleanup(r.Close)
	return r
}

// keeps protects by each of the facts.
func keeps(t require.TestingT) *policy.Policy {
	p, err := policy.New([]policy.Rule{{Executable: []string{"*"}}}, []policy.Rule{{Name: "mine", Command: []string{"--name=keepme"}},
		{Name: "theirs", Cgroup: []string{"/kubepods.slice"}}, {Name: "root", UID: []int{0}}, {Name: "db", Executable: []string{"postgres"}}})
	require.NoError(t, err)
	return p
}

func TestWhatProcSaysIsKnownOrProtects(t *testing.T) {
	r, dir := resolver(t), t.TempDir()
	f := func(wantRule string, want policy.Reason, changes ...string) {
		t.Helper()
		write(t, dir, with(changes...))
		facts, err := tableOf(t, dir, r).Look(fake, "")
		require.NoError(t, err)
		rule, why := keeps(t).Judge(&facts)
		assert.Equal(t, want, why)
		assert.Equal(t, wantRule, rule)
	}
	arguments := strings.Repeat(strings.Repeat("x", 1000)+"\x00", 70)
	other := []string{"cmdline", "python3\x00x\x00"}
	but := func(changes ...string) []string { return append(append([]string{}, other...), changes...) }
	f("mine", policy.Protected)
	f("mine", policy.Protected, "cmdline", "python3\x00"+arguments+"--name=keepme\x00")
	f("mine", policy.MaybeOne, "cmdline", "python3\x00"+strings.Repeat(arguments, 130)+"--name=keepme\x00") // 9 MB
	f("mine", policy.MaybeOne, "cmdline", "")
	f("mine", policy.MaybeOne, "cmdline", "\x00\x00")
	f("mine", policy.MaybeOne, "cmdline", "-")
	f("mine", policy.Protected, "cmdline", "\xff\xfe\n\x00--name=keepme") // what a process has written itself, without an end
	f("victims[0]", "", other...)
	f("mine", policy.MaybeOne, "cmdline", "VLLM::EngineCore\x00\x00\x00\x00\x00") // in place of longer arguments
	f("mine", policy.MaybeOne, "cmdline", "VLLM::EngineCore")                     // of as long ones
	f("mine", policy.MaybeOne, but("stat", strings.Replace(text["stat"], " 0 0 0 0 0\n", " 1000 1005 1005 0 0\n", 1))...)
	f("mine", policy.MaybeOne, but("stat", strings.Replace(text["stat"], " 0 0 0 0 0\n", " 1000 1010 2000 0 0\n", 1))...)
	f("mine", policy.MaybeOne, but("stat", strings.Replace(text["stat"], " 0 0 0 0 0\n", " 0 0 0 0 0 \n", 1))...)
	f("root", policy.MaybeOne, but("status", "")...)
	f("root", policy.MaybeOne, but("status", "-")...)
	f("root", policy.MaybeOne, but("status", "Name:\tx\nUid:\t\n")...)
	f("root", policy.MaybeOne, but("status", "Name:\tx\nUid:\tmany\n")...)
	f("root", policy.Protected, but("status", "Groups:\t"+strings.Repeat("7 ", 60000)+"\nUid:\t0\t1\t1\t1\n")...)
	f("theirs", policy.MaybeOne, but("cgroup", "")...)
	f("theirs", policy.MaybeOne, but("cgroup", "-")...)
	f("theirs", policy.MaybeOne, but("cgroup", "\x00\xff:::\n:\n")...)
	f("theirs", policy.MaybeOne, but("cgroup", "0::/../../kubepods.slice/kubepods-pod1.slice/x.scope\n")...)
	f("theirs", policy.Protected, but("cgroup", "0::/kubepods.slice/kubepods-pod1.slice\n")...)
	f("theirs", policy.MaybeOne, but("cgroup", "2:cpu:/kubepods.slice/x\n1:memory:/some/longer/path/of/another/hierarchy\n0::/\n")...)
	f("db", policy.MaybeOne, but("exe", "-")...)
	f("db", policy.Protected, but("exe", "/opt/postgres (deleted)")...)
	f("", policy.Critical, "oom_score_adj", "-1000\n")
	f("", policy.Critical, "oom_score_adj", "")
	f("", policy.Critical, "oom_score_adj", "-")
	headless := strings.Replace(text["stat"], ") S ", ") Z ", 1)
	f("", policy.Ended, "stat", strings.Replace(headless, " 20 0 3 ", " 20 0 1 ", 1))
	f("mine", policy.Protected, "stat", headless, "cmdline", "", "exe", "-", "task/4242/stat", headless, "task/4243/stat", text["stat"],
		"task/4243/cmdline", text["cmdline"], "task/4243/exe", "/usr/bin/python3", "task/4243/status", text["status"], "task/4243/cgroup", text["cgroup"],
		"task/4243/oom_score_adj", "0\n")

	// Scenario: the Collector has control groups of its own. Guarantees: of the paths nothing is believed.
	write(t, dir, with(other...))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "1", "cgroup"), []byte("0::/../../init.scope\n"), 0o600))
	facts, err := tableOf(t, dir, r).Look(fake, "")
	require.NoError(t, err)
	_, why := keeps(t).Judge(&facts)
	assert.Equal(t, policy.MaybeOne, why)
}

// Guarantees: whatever of the files of a process that is protected is missing, empty, cut in two, garbled or too long, it is no victim.
func TestWhatIsWrongInProcNeverMakesAVictim(t *testing.T) {
	r, dir := resolver(t), t.TempDir()
	protects := [][]string{
		{}, {"cmdline", "x\x00", "status", "Uid:\t0\t0\t0\t0\n"}, {"cmdline", "x\x00", "cgroup", "0::/kubepods.slice\n"}, {"cmdline", "x\x00", "exe", "/bin/postgres"},
		{"cmdline", "x\x00", "oom_score_adj", "-999\n"},
	}
	rapid.Check(t, func(rt *rapid.T) {
		files := with(rapid.SampledFrom(protects).Draw(rt, "by")...)
		for name, content := range files {
			switch rapid.IntRange(0, 7).Draw(rt, name) {
			case 0:
				delete(files, name)
			case 1:
				if name != "exe" {
					files[name] = ""
				}
			case 2:
				if name != "exe" && name != "cgroup" { // a path that is cut is another one
					files[name] = string(rapid.SliceOfN(rapid.Byte(), 1, 40).Filter(func(b []byte) bool { return !bytes.Contains(b, []byte(content)) }).Draw(rt, "garbled"))
				}
			case 3:
				if name != "exe" {
					files[name] = strings.Repeat("0::/x\n\x00", maxFile/7+2) + content
				}
			}
		}
		// What is garbled and still says something says what is not so: only that is excepted.
		if line := files["cmdline"]; line != text["cmdline"] && line != "x\x00" && line != "" && len(line) <= maxFile {
			delete(files, "cmdline")
		}
		if score := files["oom_score_adj"]; len(score) <= maxFile && score != "-999\n" && score != "0\n" {
			delete(files, "oom_score_adj")
		}
		write(rt, dir, files)
		facts, err := tableOf(rt, dir, r).Look(fake, "")
		if err != nil {
			return
		}
		_, why := keeps(rt).Judge(&facts)
		assert.NotEmpty(rt, why)
	})
}

// Scenario: vLLM's workers, and many others, write what they are in place of their arguments.
// Guarantees: a rule for what was there protects from then on because nobody knows, also where the title is longer than the arguments were.
func TestATitleIsNotTakenForTheCommandLine(t *testing.T) {
	built, err := fakecuda.Build(t.TempDir())
	require.NoError(t, err)
	table, err := NewTable(Options{Resolver: resolver(t)})
	require.NoError(t, err)
	p, err := policy.New([]policy.Rule{{Executable: []string{"workload"}}}, []policy.Rule{{Command: []string{"--name=keepme"}}})
	require.NoError(t, err)
	f := func(title string, before, after policy.Reason, arguments ...string) {
		t.Helper()
		cmd := exec.Command(built.Workload, arguments...)
		w, err := fakecuda.Run(cmd)
		require.NoError(t, err)
		defer workloadtest.End(cmd)
		require.NoError(t, w.Send("cpu"))
		_, err = w.Answer()
		require.NoError(t, err)
		judge := func() policy.Reason {
			facts, err := table.Look(w.PID(), "")
			require.NoError(t, err)
			_, why := p.Judge(&facts)
			return why
		}
		assert.Equal(t, before, judge())
		_, err = w.Do("title " + title)
		require.NoError(t, err)
		assert.Equal(t, after, judge(), title)
	}
	f("VLLM::EngineCore", policy.Protected, policy.MaybeOne, "--model=large", "--name=keepme")
	f("VLLM::EngineCore", "", policy.MaybeOne, "--model=large")
	f(strings.Repeat("long ", 100), policy.Protected, policy.MaybeOne, "--name=keepme")
	f("with --name=keepme", "", policy.Protected, "--model=large")
}

// Scenario: a real process has 70 kB of arguments, and what protects it is the last of them.
func TestALongCommandLineIsReadToItsEnd(t *testing.T) {
	r := resolver(t)
	arguments := []string{"-c", "sleep 3600; :"}
	for range 70 {
		arguments = append(arguments, strings.Repeat("x", 1000))
	}
	cmd := start(t, "sh", append(arguments, "--name=keepme")...)
	table, err := NewTable(Options{Resolver: r})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		facts, err := table.Look(cmd.Process.Pid, "")
		return err == nil && strings.HasSuffix(facts.Command, "--name=keepme")
	}, time.Minute, time.Millisecond)
}

// Scenario: the first thread of a process ends, and another one goes on. Guarantees: it is known as before, and only its end is its end.
func TestAProcessWhoseFirstThreadHasEndedIsThere(t *testing.T) {
	built, err := fakecuda.Build(t.TempDir())
	require.NoError(t, err)
	cmd := exec.Command(built.Workload)
	w, err := fakecuda.Run(cmd)
	require.NoError(t, err)
	t.Cleanup(func() { workloadtest.End(cmd) })
	table, err := NewTable(Options{Resolver: resolver(t)})
	require.NoError(t, err)
	before, err := table.Look(w.PID(), "")
	require.NoError(t, err)
	require.NoError(t, w.Send("retire"))
	require.Eventually(t, func() bool {
		s, err := readStat(table.folder(w.PID()))
		return err == nil && s.headless()
	}, time.Minute, time.Millisecond)
	after, err := table.Look(w.PID(), "")
	require.NoError(t, err)
	assert.Equal(t, before, after)
	assert.Equal(t, before.Start, Start(w.PID()))
	assert.False(t, Ended(w.PID(), before.Start))
	h := open(t, table, w.PID())
	assert.False(t, h.Wait(50*time.Millisecond, never))
	require.NoError(t, h.Terminate())
	assert.True(t, h.Wait(forEver, never))
	assert.True(t, Ended(w.PID(), before.Start))
}

// Guarantees: whatever a process calls itself, and whatever is cut off, reading it does not fail badly; and what a name holds is not taken
// for what follows it.
func FuzzStat(f *testing.F) {
	for _, s := range []string{text["stat"], "", "1", "1 (", "1 )(", "1 () Z", "7 (a) S 1) Z 1 1", strings.Repeat("9 ", 100)} {
		f.Add([]byte(s), "x")
	}
	own, err := os.ReadFile("/proc/self/stat")
	require.NoError(f, err)
	f.Add(own, ") Z 0 ")
	f.Fuzz(func(t *testing.T, content []byte, name string) {
		_, _ = parseStat(content) // it does not panic
		path, all := cgroupPaths(content)
		assert.True(t, path == "" || len(all) > 0)
		_, _ = realUID(content), unifiedPath(content)
		s, err := parseStat([]byte(strings.Replace(text["stat"], "a (strange) name", name, 1)))
		require.NoError(t, err)
		assert.Equal(t, name, s.name)
		assert.Equal(t, uint64(777), s.start)
		assert.False(t, s.ended())
	})
}

var _ guard.Table = (*Table)(nil)
