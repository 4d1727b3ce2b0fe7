// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/otelcol-llm/otelcol-llm/internal/workload/workloadtest"
)

const second = int64(time.Second)

func newResolver(t testing.TB, opts Options) *Resolver {
	t.Helper()
	r := NewResolver(opts)
	t.Cleanup(r.Close)
	require.True(t, r.SeesHost())
	return r
}

func TestAProcessIsCalledByItsExecutable(t *testing.T) {
	r := newResolver(t, Options{})
	cmd := workloadtest.Start(t, "inference-server-of-a-long-name")
	got := r.Resolve(workloadtest.PID(cmd), Device{}, second)
	assert.Equal(t, "inference-server-of-a-long-name", got.Executable)
	assert.Equal(t, workloadtest.PID(cmd), got.PID)
	assert.NotZero(t, got.Start)
	assert.Empty(t, got.Names)

	// An image that is upgraded below a running process.
	upgraded := workloadtest.Start(t, "python3.12")
	require.NoError(t, os.Remove(upgraded.Path))
	assert.Equal(t, "python3.12", r.Resolve(workloadtest.PID(upgraded), Device{}, second).Executable)
}

// Scenario: a real process in real control groups of a pod, a real socket of a kubelet that has given the device to it.
// Guarantees: container, pod and namespace are told; on a device of another pod they are not.
func TestAPodsLabelsOnAProcess(t *testing.T) {
	cmd := workloadtest.Start(t, "vllm")
	workloadtest.Move(t, cmd, workloadtest.Pod(uid1, id1))
	k := workloadtest.NewKubelet(t, holds("chat-0", container("vllm", gpu0)), holds("a", container("c", gpu1+"::0")), holds("b", container("c", gpu1+"::1")))
	p, _ := listening(t, PodsOptions{Socket: k.Socket})
	r := newResolver(t, Options{Pods: p})
	require.Eventually(t, knows(p, gpu0, "chat-0"), soon, time.Millisecond)

	want := Process{PID: workloadtest.PID(cmd), Start: r.Resolve(workloadtest.PID(cmd), Device{}, second).Start, Executable: "vllm",
		Cgroup: Cgroup{ContainerID: id1, PodUID: uid1}}
	assert.Equal(t, want, r.Resolve(workloadtest.PID(cmd), Device{UUID: gpu1}, second), "shared: what the control group tells, and no name")
	want.Names = Names{Namespace: "llm", Pod: "chat-0", Container: "vllm"}
	assert.Equal(t, want, r.Resolve(workloadtest.PID(cmd), Device{UUID: gpu0}, second))
	assert.Equal(t, want, r.Resolve(workloadtest.PID(cmd), Device{UUID: gpu0}, 2*second))
}

// Scenario: three pods share a GPU by time-slicing (dcgm-exporter#587, #582), one process of each runs there.
// Guarantees: without the kubelet's logs no process has a name; with them each has its own.
func TestPodsThatShareADeviceAreToldApartOrNotNamed(t *testing.T) {
	root, logs := t.TempDir(), t.TempDir()
	k := workloadtest.NewKubelet(t, holds("a", container("c", gpu0+"::0")), holds("b", container("c", gpu0+"::1")), holds("d", container("c", gpu0+"::2")))
	p, _ := listening(t, PodsOptions{Socket: k.Socket})
	require.Eventually(t, func() bool { known, _ := p.Devices(); return known == 1 }, soon, time.Millisecond)
	ids := map[string]string{}
	for i, pod := range []string{"a", "b", "d"} {
		ids[pod] = strings.Repeat(pod, 64)
		process(t, root, 100+i, "python3", 1, "0::/kubepods/pod"+strings.Repeat(pod, 32)+"/"+ids[pod]+"\n")
	}
	r := newResolver(t, Options{ProcRoot: root, Pods: p, KubeletLogs: logs})
	for i, pod := range []string{"a", "b", "d"} {
		got := r.Resolve(uint32(100+i), Device{UUID: gpu0}, second)
		assert.Empty(t, got.Names, pod)
		assert.Equal(t, ids[pod], got.ContainerID)
	}
	for pod, id := range ids {
		require.NoError(t, os.WriteFile(filepath.Join(logs, pod+"_llm_c-"+id+".log"), nil, 0o600))
	}
	assert.Empty(t, r.Resolve(100, Device{UUID: gpu0}, 2*second).Names, "the folder is not looked at all the time")
	for i, pod := range []string{"a", "b", "d"} {
		assert.Equal(t, Names{Namespace: "llm", Pod: pod, Container: "c"}, r.Resolve(uint32(100+i), Device{UUID: gpu0}, 10*second).Names)
	}
}

// Scenario: a pod was given a device, and a process of another pod, or of the host, uses it too.
// Guarantees: while both are there nobody is named; when the stranger has gone, the pod is.
func TestAStrangerOnADeviceTakesNoName(t *testing.T) {
	k := workloadtest.NewKubelet(t, holds("chat-0", container("vllm", gpu0)))
	p, _ := listening(t, PodsOptions{Socket: k.Socket})
	require.Eventually(t, knows(p, gpu0, "chat-0"), soon, time.Millisecond)
	own, stranger, host := workloadtest.Start(t, "vllm"), workloadtest.Start(t, "monitor"), workloadtest.Start(t, "Xorg")
	workloadtest.Move(t, own, workloadtest.Pod(uid1, id1))
	workloadtest.Move(t, stranger, workloadtest.Pod(uid2, id2))
	p.Hurry() // the processes have to be older than the answer
	require.Eventually(t, func() bool { return k.Asked() >= 2 }, soon, time.Millisecond)
	r := newResolver(t, Options{Pods: p})
	named := func(cmd *exec.Cmd, now int64) bool {
		return r.Resolve(workloadtest.PID(cmd), Device{UUID: gpu0}, now*second).Pod == "chat-0"
	}
	require.Eventually(t, func() bool { return named(own, 1) }, soon, time.Millisecond)
	assert.False(t, named(host, 1))
	assert.False(t, named(stranger, 1))
	for now := range int64(3) {
		assert.False(t, named(own, 2+now))
		assert.False(t, named(stranger, 2+now))
	}
	workloadtest.End(stranger)
	assert.True(t, named(own, 10))
	assert.False(t, named(stranger, 10))

	// A stranger that is seen first is taken for the pod until the pod itself is seen.
	r = newResolver(t, Options{Pods: p})
	stranger = workloadtest.Start(t, "monitor")
	workloadtest.Move(t, stranger, workloadtest.Pod(uid2, id2))
	p.Hurry()
	require.Eventually(t, func() bool { return named(stranger, 20) }, soon, 10*time.Millisecond)
	assert.False(t, named(own, 20))
	assert.False(t, named(stranger, 21))
	workloadtest.End(stranger)
	assert.True(t, named(own, 22))
}

// Scenario: more processes than are remembered, of the pod that was given a device and of another one.
// Guarantees: whichever of them are remembered, a stranger never has the pod's name while the pod is there too; the pod alone has
// it for all its processes.
func TestAStrangerBeyondTheLimitTakesNoName(t *testing.T) {
	k := workloadtest.NewKubelet(t, holds("chat-0", container("vllm", gpu0)))
	p, _ := listening(t, PodsOptions{Socket: k.Socket})
	require.Eventually(t, knows(p, gpu0, "chat-0"), soon, time.Millisecond)
	root := t.TempDir()
	for pid, uid := range map[int]string{1: uid1, 2: uid1, 11: uid2, 12: uid2} {
		process(t, root, pid, "x", 1, "0::/"+workloadtest.Pod(uid, id1)+"\n")
	}
	f := func(want string, order ...uint32) {
		t.Helper()
		r := newResolver(t, Options{ProcRoot: root, Pods: p, MaxProcesses: 1, Expiry: time.Minute})
		for now := range int64(40) {
			for _, pid := range order {
				got := r.Resolve(pid, Device{UUID: gpu0}, (1+now)*second)
				require.NotEmpty(t, got.PodUID)
				if now > 0 { // who is seen first is believed until the other is seen
					assert.Equal(t, want, got.Pod, "%d of %d after %d s", pid, order, now)
				}
			}
		}
	}
	f("chat-0", 1, 2)
	f("", 1, 11)
	f("", 11, 1)
	f("", 11, 12, 1)
	f("", 11, 1, 2, 12)
}

// Scenario: a pod has ended and another one has been given its device, and the kubelet was last asked before that.
// Guarantees: the new pod's process does not get the old one's name; the kubelet is asked at once.
func TestAnOldAnswerIsNotAboutANewProcess(t *testing.T) {
	k := workloadtest.NewKubelet(t, holds("old-0", container("vllm", gpu0)))
	p, _ := listening(t, PodsOptions{Socket: k.Socket, Interval: time.Hour})
	require.Eventually(t, knows(p, gpu0, "old-0"), soon, time.Millisecond)
	time.Sleep(20 * time.Millisecond) // so that the process starts in a later tick of the clock
	cmd := workloadtest.Start(t, "vllm")
	workloadtest.Move(t, cmd, workloadtest.Pod(uid2, id2))
	k.Hold(holds("new-0", container("vllm", gpu0)))
	r := newResolver(t, Options{Pods: p})
	now := second
	require.Eventually(t, func() bool {
		now += second
		pod := r.Resolve(workloadtest.PID(cmd), Device{UUID: gpu0}, now).Pod
		assert.NotEqual(t, "old-0", pod)
		return pod == "new-0"
	}, soon, 10*time.Millisecond)
	assert.GreaterOrEqual(t, k.Asked(), 2, "long before the interval is over")
}

// Scenario: a StatefulSet's pod is replaced by one of the same name.
// Guarantees: the new one is named as soon as the old one's process has ended.
func TestAPodMayBeReplacedByOneOfTheSameName(t *testing.T) {
	before, after := workloadtest.Start(t, "vllm"), workloadtest.Start(t, "vllm")
	workloadtest.Move(t, before, workloadtest.Pod(uid1, id1))
	workloadtest.Move(t, after, workloadtest.Pod(uid2, id2))
	k := workloadtest.NewKubelet(t, holds("chat-0", container("vllm", gpu0)))
	p, _ := listening(t, PodsOptions{Socket: k.Socket})
	require.Eventually(t, knows(p, gpu0, "chat-0"), soon, time.Millisecond)
	r := newResolver(t, Options{Pods: p})
	require.Eventually(t, func() bool { return r.Resolve(workloadtest.PID(before), Device{UUID: gpu0}, second).Pod == "chat-0" }, soon, time.Millisecond)
	workloadtest.End(before)
	assert.Equal(t, "chat-0", r.Resolve(workloadtest.PID(after), Device{UUID: gpu0}, 2*second).Pod)
}

func TestAReusedPIDIsAnotherProcess(t *testing.T) {
	r := newResolver(t, Options{})
	old := workloadtest.Start(t, "old")
	number := old.Process.Pid
	before := r.Resolve(uint32(number), Device{}, second)
	assert.Equal(t, "old", before.Executable)
	workloadtest.End(old)
	assert.Equal(t, Process{PID: uint32(number)}, r.Resolve(uint32(number), Device{}, 2*second), "gone")
	reincarnate(t, number, func() *exec.Cmd { return workloadtest.Start(t, "new") })
	after := r.Resolve(uint32(number), Device{}, 3*second)
	assert.Equal(t, "new", after.Executable)
	assert.NotEqual(t, before.Start, after.Start)

	// Without a look in between.
	r.Resolve(uint32(number), Device{}, 4*second)
	require.NoError(t, syscall.Kill(number, syscall.SIGKILL))
	var status syscall.WaitStatus
	_, err := syscall.Wait4(number, &status, 0, nil)
	require.NoError(t, err)
	reincarnate(t, number, func() *exec.Cmd { return workloadtest.Start(t, "new") })
	assert.NotEqual(t, after.Start, r.Resolve(uint32(number), Device{}, 5*second).Start)
}

func TestAProcessThatExecutesSomethingElseIsReadAnew(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", "read x; exec sleep 3600")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { workloadtest.End(cmd) })
	r := newResolver(t, Options{})
	require.NotEqual(t, "sleep", r.Resolve(workloadtest.PID(cmd), Device{}, second).Executable)
	_, err = in.Write([]byte("\n"))
	require.NoError(t, err)
	now := second
	require.Eventually(t, func() bool {
		now += second
		return r.Resolve(workloadtest.PID(cmd), Device{}, now).Executable == "sleep"
	}, soon, 10*time.Millisecond)
	assert.Equal(t, 1, r.Len())
}

// Scenario: a Collector that is not root. Guarantees: what everybody may see is told, and what it may not see is left out.
func TestWhatMayNotBeSeenIsNotKnown(t *testing.T) {
	cmd := workloadtest.Start(t, "of-somebody-else")
	workloadtest.Move(t, cmd, workloadtest.Pod(uid1, id1))
	nobody := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}

	got := ask(t, nobody, question{PID: workloadtest.PID(cmd)})
	assert.True(t, got.SeesHost)
	assert.Equal(t, Cgroup{ContainerID: id1, PodUID: uid1}, got.Process.Cgroup)
	assert.Equal(t, "of-somebody-els", got.Process.Executable, "the command name, which is 15 bytes")

	got = ask(t, nobody, question{PID: workloadtest.PID(cmd), ProcRoot: hidden(t)})
	assert.Equal(t, Process{PID: workloadtest.PID(cmd)}, got.Process, "hidepid=2")
}

// Scenario: a Collector in a container with PIDs of its own. Guarantees: since a number means another process there, none
// is known, unless the host's /proc is mounted and named.
func TestPIDsOfAnotherNamespaceAreNotKnown(t *testing.T) {
	cmd := workloadtest.Start(t, "vllm")
	contained := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	got := ask(t, contained, question{PID: workloadtest.PID(cmd)})
	assert.False(t, got.SeesHost)
	assert.Equal(t, Process{PID: workloadtest.PID(cmd)}, got.Process)

	got = ask(t, contained, question{PID: workloadtest.PID(cmd), ProcRoot: "/proc"})
	assert.True(t, got.SeesHost)
	assert.Equal(t, "vllm", got.Process.Executable)
}

// Scenario: a Collector in a pod whose control groups look like the root to it, as containers have it by default, and
// processes in its own pod and in another one, whose control groups are therefore told from there: /../…
// Guarantees: the container is known, and the pod where it is another one.
func TestControlGroupsAreUnderstoodFromInsideOfAContainer(t *testing.T) {
	other, neighbour, own := workloadtest.Start(t, "vllm"), workloadtest.Start(t, "sidecar"), workloadtest.Start(t, "place")
	workloadtest.Move(t, own, workloadtest.Pod(uid2, strings.Repeat("c", 64)))
	workloadtest.Move(t, neighbour, workloadtest.Pod(uid2, id2))
	workloadtest.Move(t, other, workloadtest.Pod(uid1, id1))
	inside := filepath.Join(workloadtest.Cgroups(t), workloadtest.Pod(uid2, strings.Repeat("c", 64)), "cgroup.procs")
	from := []string{"sh", "-c", `echo $$ > "$0" && exec unshare -C "$@"`, inside}

	assert.Equal(t, Cgroup{ContainerID: id1, PodUID: uid1}, ask(t, nil, question{PID: workloadtest.PID(other)}, from...).Process.Cgroup)
	assert.Equal(t, Cgroup{ContainerID: id2}, ask(t, nil, question{PID: workloadtest.PID(neighbour)}, from...).Process.Cgroup)
	assert.Equal(t, Cgroup{}, ask(t, nil, question{PID: workloadtest.PID(own)}, from...).Process.Cgroup, "its own place is /")
}

func TestAProcessThatIsNotThereIsNotKnown(t *testing.T) {
	root := t.TempDir()
	r := newResolver(t, Options{ProcRoot: root})
	f := func(name string, prepare func()) {
		t.Helper()
		prepare()
		assert.Equal(t, Process{PID: 7}, r.Resolve(7, Device{UUID: gpu0}, second), name)
		assert.Zero(t, r.Len(), name)
	}
	write := func(file, content string) {
		require.NoError(t, os.MkdirAll(filepath.Join(root, "7"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, "7", file), []byte(content), 0o600))
	}
	f("nothing", func() {})
	f("only a folder", func() { require.NoError(t, os.MkdirAll(filepath.Join(root, "7"), 0o755)) })
	f("no stat", func() { write("comm", "x\n") })
	f("an empty stat", func() { write("stat", "") })
	f("half a stat", func() { write("stat", "7 (x) S 1 2 3\n") })
	f("a stat without numbers", func() { write("stat", "7 (x) "+strings.Repeat("? ", 40)) })

	// Names of processes are anybody's to choose.
	process(t, root, 8, "a) S (b", 42, "")
	got := r.Resolve(8, Device{}, second)
	assert.Equal(t, "a) S (b", got.Executable)
	assert.Equal(t, uint64(42), got.Start)
}

// Scenario: processes come and go. Guarantees: those that nobody asks for are forgotten, with their files; beyond the limit
// a process is told all the same.
func TestWhatIsRememberedIsBounded(t *testing.T) {
	root := t.TempDir()
	for i := range 20 {
		process(t, root, 100+i, "python3", 1+i, "0::/docker/"+id1+"\n")
	}
	r := newResolver(t, Options{ProcRoot: root, MaxProcesses: 8, Expiry: time.Minute})
	for i := range uint32(20) {
		assert.Equal(t, id1, r.Resolve(100+i, Device{}, second).ContainerID)
	}
	assert.Equal(t, 8, r.Len())
	assert.Equal(t, uint64(12), r.Beyond())
	assert.Equal(t, 8, openFiles(t, root))

	r.Resolve(100, Device{}, 50*second)
	r.Resolve(100, Device{}, 70*second)
	assert.Equal(t, 1, r.Len())
	r.Close()
	assert.Zero(t, r.Len())
	assert.Zero(t, openFiles(t, root))
}

// openFiles is how many files of this process are open below a folder.
func openFiles(t *testing.T, below string) (n int) {
	t.Helper()
	files, err := filepath.Glob("/proc/self/fd/*")
	require.NoError(t, err)
	for _, file := range files {
		if at, err := os.Readlink(file); err == nil && strings.HasPrefix(at, below) { // others come and go
			n++
		}
	}
	return n
}

func TestAKnownProcessCostsNoAllocation(t *testing.T) {
	cmd := workloadtest.Start(t, "vllm")
	workloadtest.Move(t, cmd, workloadtest.Pod(uid1, id1))
	k := workloadtest.NewKubelet(t, holds("chat-0", container("vllm", gpu0)))
	p, _ := listening(t, PodsOptions{Socket: k.Socket, Interval: time.Hour})
	require.Eventually(t, knows(p, gpu0, "chat-0"), soon, time.Millisecond)
	r := newResolver(t, Options{Pods: p})
	now := int64(0)
	require.Equal(t, "chat-0", r.Resolve(workloadtest.PID(cmd), Device{UUID: gpu0}, second).Pod)
	p.Close() // what it knows stays, and it allocates nothing beside this any more
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		now++
		if r.Resolve(workloadtest.PID(cmd), Device{UUID: gpu0}, second+now).Pod != "chat-0" {
			t.Error("lost")
		}
	}))
}

// 20 processes of 8 GPUs, in pods.
func BenchmarkResolve(b *testing.B) {
	cmds := make([]*exec.Cmd, 20)
	var pods []*podresources.PodResources
	for i := range cmds {
		cmds[i] = workloadtest.Start(b, "vllm")
		digit := string("0123456789abcdef"[i%16])
		workloadtest.Move(b, cmds[i], workloadtest.Pod(strings.ReplaceAll(uid1, "0b", digit+string("ab"[i/16])), strings.Repeat(digit, 63)+string("ab"[i/16])))
	}
	for i := range 8 {
		pods = append(pods, holds("chat", container("vllm", "GPU-"+string(rune('a'+i)))))
	}
	k := workloadtest.NewKubelet(b, pods...)
	p, _ := listening(b, PodsOptions{Socket: k.Socket, Interval: time.Hour})
	require.Eventually(b, func() bool { known, _ := p.Devices(); return known == 8 }, soon, time.Millisecond)

	b.Run("known", func(b *testing.B) {
		r := newResolver(b, Options{Pods: p})
		now := second
		b.ReportAllocs()
		for b.Loop() {
			now++
			for _, cmd := range cmds {
				r.Resolve(workloadtest.PID(cmd), Device{UUID: "GPU-a"}, now)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/20, "ns/process")
	})
	b.Run("new", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r := NewResolver(Options{Pods: p})
			for _, cmd := range cmds {
				r.Resolve(workloadtest.PID(cmd), Device{UUID: "GPU-a"}, second)
			}
			r.Close()
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/20, "ns/process")
	})
}
