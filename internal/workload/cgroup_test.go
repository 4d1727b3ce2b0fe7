// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

const (
	id1  = "3f1a5b0c9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a3b2c1d0e9f8a7b6c5d4e3f2a"
	id2  = "aaaa5b0c9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a3b2c1d0e9f8a7b6c5d4e3f2a"
	uid1 = "0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0"
	uid2 = "ffffffff-4f50-6172-8394-a5b6c7d8e9f0"
	hash = "5eed5eed5eed5eed5eed5eed5eed5eed"
)

var uid1Systemd = strings.ReplaceAll(uid1, "-", "_")

func TestACgroupTellsTheContainerAndThePod(t *testing.T) {
	f := func(name, content, container, pod string) {
		t.Helper()
		assert.Equal(t, Cgroup{ContainerID: container, PodUID: pod}, ParseCgroup([]byte(content)), name)
	}

	// Version 2: one line.
	f("containerd, systemd", "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod"+uid1Systemd+".slice/cri-containerd-"+id1+".scope\n", id1, uid1)
	f("containerd, cgroupfs", "0::/kubepods/besteffort/pod"+uid1+"/"+id1+"\n", id1, uid1)
	f("guaranteed", "0::/kubepods/pod"+uid1+"/"+id1+"\n", id1, uid1)
	f("guaranteed, systemd", "0::/kubepods.slice/kubepods-pod"+uid1Systemd+".slice/cri-containerd-"+id1+".scope\n", id1, uid1)
	f("cri-o", "0::/kubepods.slice/kubepods-pod"+uid1Systemd+".slice/crio-"+id1+".scope\n", id1, uid1)
	f("cri-o with crun", "0::/kubepods.slice/kubepods-pod"+uid1Systemd+".slice/crio-"+id1+".scope/container\n", id1, uid1)
	f("cri-dockerd", "0::/kubepods.slice/kubepods-pod"+uid1Systemd+".slice/docker-"+id1+".scope\n", id1, uid1)
	f("cgroupfs names under systemd", "0::/system.slice/containerd.service/kubepods-burstable-pod"+uid1Systemd+".slice:cri-containerd:"+id1+"\n", id1, uid1)
	f("a static pod", "0::/kubepods/burstable/pod"+hash+"/"+id1+"\n", id1, hash)
	f("docker, systemd", "0::/system.slice/docker-"+id1+".scope\n", id1, "")
	f("docker, cgroupfs", "0::/docker/"+id1+"\n", id1, "")
	f("podman", "0::/machine.slice/libpod-"+id1+".scope/container\n", id1, "")
	f("podman, of a user", "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-"+id1+".scope/container\n", id1, "")
	f("podman, in a pod of its own kind", "0::/machine.slice/machine-libpod_pod_"+id2+".slice/libpod-"+id1+".scope\n", id1, "")
	f("nerdctl", "0::/system.slice/nerdctl-"+id1+".scope\n", id1, "")

	// As a container with a cgroup namespace of its own sees its neighbours.
	f("another pod", "0::/../../kubepods-burstable-pod"+uid1Systemd+".slice/cri-containerd-"+id1+".scope\n", id1, uid1)
	f("another container of the same pod", "0::/../cri-containerd-"+id1+".scope\n", id1, "")
	f("itself", "0::/\n", "", "")

	// Version 1, and both.
	f("every hierarchy", "12:pids:/docker/"+id1+"\n11:cpu,cpuacct:/docker/"+id1+"\n1:name=systemd:/docker/"+id1+"\n", id1, "")
	f("kubernetes", "11:memory:/kubepods/burstable/pod"+uid1+"/"+id1+"\n1:name=systemd:/kubepods/burstable/pod"+uid1+"/"+id1, id1, uid1)
	f("some hierarchies are not delegated", "9:name=systemd:/\n4:memory:/kubepods/pod"+uid1+"/"+id1+"\n0::/\n", id1, uid1)
	f("the line that tells most", "3:cpu:/kubepods/pod"+uid1+"\n2:memory:/kubepods/pod"+uid1+"/"+id1+"\n0::/system.slice/docker-"+id2+".scope\n", id1, uid1)

	// Nested: what its kubelet knows, else what is nearest.
	f("kind", "0::/docker/"+id2+"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod"+uid1Systemd+".slice/cri-containerd-"+id1+".scope\n", id1, uid1)
	f("docker in a pod", "0::/kubepods/pod"+uid1+"/"+id1+"/docker/"+id2+"\n", id1, uid1)
	f("a pod in a pod", "0::/kubepods/pod"+uid2+"/"+id2+"/kubepods/pod"+uid1+"/"+id1+"\n", id1, uid1)
	f("docker in docker", "0::/docker/"+id2+"/docker/"+id1+"\n", id1, "")
	f("systemd in a container", "0::/docker/"+id1+"/system.slice/ssh.service\n", id1, "")

	// No container.
	f("a service", "0::/system.slice/sshd.service\n", "", "")
	f("slurm", "0::/system.slice/slurmstepd.scope/job_4242/step_0/user/task_0\n", "", "")
	f("a pod and no container", "0::/kubepods/pod"+uid1+"\n", "", uid1)
	f("beside a container", "0::/kubepods.slice/kubepods-pod"+uid1Systemd+".slice/crio-conmon-"+id1+".scope\n", "", uid1)
	f("podman's monitor", "0::/machine.slice/libpod-conmon-"+id1+".scope\n", "", "")
	f("an id that is too short", "0::/docker/"+id1[1:]+"\n", "", "")
	f("an id that is too long", "0::/docker/0"+id1+"\n", "", "")
	f("no id", "0::/docker/"+strings.Repeat("z", 64)+"\n", "", "")
	f("no uid", "0::/kubepods/pod"+strings.Repeat("z", 36)+"/"+id1+"\n", id1, "")
	f("a word that ends in pod", "0::/tripod"+uid1+"/"+id1+"\n", id1, "")
	f("nothing", "", "", "")
	f("no cgroup at all", "::\n:\n0:\n", "", "")
}

// Guarantees: whatever a file holds, what comes out is an id and a uid, or nothing, and stands in the file.
func FuzzParseCgroup(f *testing.F) {
	f.Add([]byte("0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + uid1Systemd + ".slice/cri-containerd-" + id1 + ".scope\n"))
	f.Add([]byte("12:pids:/docker/" + id1 + "\n0::/../../pod" + uid1 + "/" + id2))
	f.Add([]byte("9:name=systemd:/\n4:memory:/a:b:pod" + hash + ":c:" + id1 + "\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		found := ParseCgroup(content)
		if found.ContainerID != "" {
			assert.Len(t, found.ContainerID, 64)
			assert.Contains(t, string(content), found.ContainerID)
		}
		if found.PodUID != "" {
			assert.Contains(t, []int{32, 36}, len(found.PodUID))
			assert.Contains(t, strings.ReplaceAll(string(content), "_", "-"), found.PodUID)
		}
	})
}

// Guarantees: what a runtime writes is found, however deep it stands and whatever stands around it.
func TestAContainerIsFoundWhereverItStands(t *testing.T) {
	folder := rapid.StringMatching(`[a-z][a-z0-9.@_]{0,12}`).Filter(func(s string) bool { return len(s) < 32 })
	rapid.Check(t, func(t *rapid.T) {
		above := "/" + strings.Join(rapid.SliceOfN(folder, 0, 4).Draw(t, "above"), "/")
		below := strings.Join(rapid.SliceOfN(folder, 0, 3).Draw(t, "below"), "/")
		id := rapid.StringMatching(`[0-9a-f]{64}`).Draw(t, "id")
		uid := rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`).Draw(t, "uid")
		form := rapid.SampledFrom([]string{"/pod%/#", "/kubepods-pod_.slice/cri-containerd-#.scope", "/kubepods-burstable-pod_.slice:cri-containerd:#"}).Draw(t, "form")
		path := strings.NewReplacer("%", uid, "_", strings.ReplaceAll(uid, "-", "_"), "#", id).Replace(form)
		assert.Equal(t, Cgroup{ContainerID: id, PodUID: uid}, ParseCgroup([]byte("0::"+above+path+"/"+below+"\n")))
	})
}

func BenchmarkParseCgroup(b *testing.B) {
	content := []byte("0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + uid1Systemd + ".slice/cri-containerd-" + id1 + ".scope\n")
	b.ReportAllocs()
	for b.Loop() {
		ParseCgroup(content)
	}
}
