// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const containerID = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// pod is a process in a pod of which all is known.
func pod() Facts {
	return Facts{
		PID: 42, Start: 7, Path: "/usr/bin/python3.12", Comm: "python3", Command: "python3 -m vllm serve --port 8000", UID: 1000,
		Cgroup: "/kubepods.slice/kubepods-burstable.slice/cri-containerd-" + containerID + ".scope", ContainerID: containerID, PodUID: "u",
		Namespace: "batch", Pod: "train-0", Container: "worker",
	}
}

// bare is one that runs in no container.
func bare() Facts {
	f := pod()
	f.Cgroup, f.ContainerID, f.PodUID, f.Namespace, f.Pod, f.Container = "/user.slice/user-1000.slice/session-1.scope", "", "", "", "", ""
	return f
}

func TestARuleFitsWhatItNames(t *testing.T) {
	f := func(facts Facts, r Rule, want answer) {
		t.Helper()
		require.NoError(t, r.compile())
		assert.Equal(t, want, r.fits(&facts), "%+v", r)
	}
	f(pod(), Rule{Namespace: []string{"batch"}}, yes)
	f(pod(), Rule{Namespace: []string{"prod", "bat*"}}, yes)
	f(pod(), Rule{Namespace: []string{"prod"}}, no)
	f(pod(), Rule{Pod: []string{"train-?"}, Container: []string{"worker"}}, yes)
	f(pod(), Rule{Pod: []string{"train-?"}, Container: []string{"sidecar"}}, no)
	f(pod(), Rule{ContainerID: []string{containerID}}, yes)
	f(pod(), Rule{ContainerID: []string{containerID[:12]}}, yes)
	f(pod(), Rule{ContainerID: []string{containerID[:11]}}, no)
	f(pod(), Rule{Executable: []string{"python3*"}}, yes)
	f(pod(), Rule{Executable: []string{"/usr/bin/*"}}, yes)
	f(pod(), Rule{Executable: []string{"/opt/*"}}, no)
	f(pod(), Rule{Command: []string{`\bvllm serve\b`}}, yes)
	f(pod(), Rule{Command: []string{`^vllm`}}, no)
	f(pod(), Rule{UID: []int{0, 1000}}, yes)
	f(pod(), Rule{UID: []int{0}}, no)
	f(pod(), Rule{Cgroup: []string{"/kubepods.slice"}}, yes)
	f(pod(), Rule{Cgroup: []string{"/kubepods.slice/*-burstable.slice"}}, yes)
	f(pod(), Rule{Cgroup: []string{"/kubepods"}}, no)
	f(bare(), Rule{Cgroup: []string{"/user.slice/user-*.slice/"}}, yes)
	f(bare(), Rule{Namespace: []string{"*"}}, no) // it is in no pod, for certain
	f(bare(), Rule{ContainerID: []string{"*"}}, no)
}

func TestWhatIsNotKnownIsNeitherYesNorNo(t *testing.T) {
	f := func(hide func(*Facts), r Rule, want answer) {
		t.Helper()
		facts := pod()
		hide(&facts)
		require.NoError(t, r.compile())
		assert.Equal(t, want, r.fits(&facts), "%+v", r)
	}
	noNames := func(f *Facts) { f.Namespace, f.Pod, f.Container = "", "", "" }
	f(noNames, Rule{Namespace: []string{"prod"}}, unknown)
	f(noNames, Rule{Pod: []string{"*"}}, unknown)
	f(noNames, Rule{Namespace: []string{"prod"}, UID: []int{0}}, no) // whatever the namespace is
	f(noNames, Rule{Namespace: []string{"prod"}, UID: []int{1000}}, unknown)
	f(func(f *Facts) { f.Container = "" }, Rule{Namespace: []string{"batch"}, Container: []string{"worker"}}, unknown)
	f(func(f *Facts) { f.Cgroup, f.ContainerID = "", "" }, Rule{Cgroup: []string{"/x"}}, unknown)
	f(func(f *Facts) { f.Cgroup, f.ContainerID = "", "" }, Rule{ContainerID: []string{"x"}}, unknown)
	f(func(f *Facts) { f.Cgroup, f.PodUID, f.Namespace = "", "", "" }, Rule{Namespace: []string{"x"}}, unknown)
	f(func(f *Facts) { f.Path = "" }, Rule{Executable: []string{"x"}}, unknown)
	f(func(f *Facts) { f.Command = "" }, Rule{Command: []string{"x"}}, unknown)
	f(func(f *Facts) { f.UID = -1 }, Rule{UID: []int{0}}, unknown)
}

func TestWhoIsEndedAndWhoNever(t *testing.T) {
	everybody := []Rule{{Name: "all", Executable: []string{"*"}}}
	f := func(victims, protected []Rule, change func(*Facts), wantRule string, want Reason) {
		t.Helper()
		p, err := New(victims, protected, 5, 6)
		require.NoError(t, err)
		facts := pod()
		if change != nil {
			change(&facts)
		}
		rule, why := p.Judge(&facts)
		assert.Equal(t, want, why)
		assert.Equal(t, wantRule, rule)
	}
	f(nil, nil, nil, "", NoRule) // by default, nobody
	f(everybody, nil, nil, "all", "")
	f([]Rule{{UID: []int{0}}, {UID: []int{1000}}}, nil, nil, "victims[1]", "")
	f(everybody, []Rule{{Namespace: []string{"batch"}}}, nil, "protected[0]", Protected)
	f(everybody, []Rule{{Namespace: []string{"prod"}}}, nil, "all", "")
	noNames := func(f *Facts) { f.Namespace = "" }
	f(everybody, []Rule{{Name: "prod", Namespace: []string{"prod"}}}, noNames, "prod", MaybeOne)
	f(everybody, []Rule{{Namespace: []string{"prod"}}, {Name: "user", UID: []int{1000}}}, noNames, "user", Protected)
	f([]Rule{{Namespace: []string{"batch"}}}, nil, noNames, "", NoRule) // who may be a victim is none
	f(everybody, nil, func(f *Facts) { f.PID = 1 }, "", Init)
	f(everybody, nil, func(f *Facts) { f.PID = 6 }, "", Self)
	f(everybody, nil, func(f *Facts) { f.Kernel = true }, "", KernelThread)
	f(everybody, nil, func(f *Facts) { f.Ended = true }, "", Ended)
	f(everybody, nil, func(f *Facts) { f.Critical = true }, "", Critical)
	f(everybody, nil, func(f *Facts) { f.Path = "/usr/sbin/sshd" }, "", Critical)
	f(everybody, nil, func(f *Facts) { f.Path, f.Comm = "", "sshd" }, "", Critical)
	f(everybody, nil, func(f *Facts) { f.Path, f.Comm = "", "nvidia-persiste" }, "", Critical) // the kernel keeps 15 letters
	f(everybody, nil, func(f *Facts) { f.Path = "/opt/nvidia-cuda-mps-server" }, "", Critical)
	f(everybody, nil, func(f *Facts) { f.Path = "/usr/bin/otelcol-llm" }, "", Critical)
}

func TestARuleThatIsWrongIsNamed(t *testing.T) {
	f := func(r Rule, want string) {
		t.Helper()
		_, err := New(nil, []Rule{{UID: []int{0}}, r})
		require.ErrorContains(t, err, want)
	}
	f(Rule{}, `protected[1]: says nothing: every process would fit; if that is meant, write executable: ["*"]`)
	f(Rule{Name: "x"}, "says nothing")
	f(Rule{Pod: []string{"a", ""}}, "protected[1]: pod[1]: is empty")
	f(Rule{Pod: []string{"[a"}}, `pod[0]: "[a" is no pattern`)
	f(Rule{Cgroup: []string{"user.slice"}}, `cgroup[0]: "user.slice" does not begin with /`)
	f(Rule{Command: []string{"("}}, `command[0]: "(" is no regular expression`)
	f(Rule{UID: []int{-1}}, "uid[0]: -1 is no user")
}

// Guarantees: whatever of a process is hidden, one that is protected when all is known is not ended.
func TestHidingWhatIsKnownNeverMakesAVictim(t *testing.T) {
	value := rapid.SampledFrom([]string{"a", "b", "c"})
	some := func(rt *rapid.T, name string) []string { return rapid.SliceOfN(value, 0, 2).Draw(rt, name) }
	rule := func(rt *rapid.T) Rule {
		r := Rule{Namespace: some(rt, "namespace"), Pod: some(rt, "pod"), Container: some(rt, "container"), Executable: some(rt, "executable"), Command: some(rt, "command")}
		if rapid.Bool().Draw(rt, "uid") || r.compile() != nil {
			r.UID = []int{rapid.IntRange(0, 2).Draw(rt, "user")}
		}
		return r
	}
	rapid.Check(t, func(rt *rapid.T) {
		var rules []Rule
		for range rapid.IntRange(1, 3).Draw(rt, "rules") {
			rules = append(rules, rule(rt))
		}
		p, err := New([]Rule{{UID: []int{0, 1, 2}}}, rules)
		require.NoError(rt, err)
		facts := Facts{
			PID: 42, UID: rapid.IntRange(0, 2).Draw(rt, "is"), Path: "/" + value.Draw(rt, "path"), Command: value.Draw(rt, "line"), Cgroup: "/x", PodUID: "u",
			Namespace: value.Draw(rt, "ns"), Pod: value.Draw(rt, "name"), Container: value.Draw(rt, "c"),
		}
		_, all := p.Judge(&facts)
		hide := func(name string, f func()) {
			if rapid.Bool().Draw(rt, "hide "+name) {
				f()
			}
		}
		hide("namespace", func() { facts.Namespace = "" })
		hide("pod", func() { facts.Pod = "" })
		hide("container", func() { facts.Container = "" })
		hide("path", func() { facts.Path = "" })
		hide("command", func() { facts.Command = "" })
		hide("arguments", func() { facts.Command, facts.Retitled = "title", true })
		hide("cgroup", func() { facts.Cgroup, facts.PodUID, facts.Namespace, facts.Pod, facts.Container = "", "", "", "", "" })
		_, hidden := p.Judge(&facts)
		if all == Protected {
			assert.NotEmpty(rt, hidden)
		}
	})
}
