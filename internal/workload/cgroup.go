// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bytes"
	"strings"
)

// Cgroup is where a process runs, as far as its control groups tell.
type Cgroup struct {
	// ContainerID are the 64 hexadecimal digits by which the runtime calls the container.
	ContainerID string
	// PodUID is the pod's uid; for a static pod the hash by which the kubelet calls it.
	PodUID string
}

const containerIDLength = 64

// ParseCgroup reads a /proc/PID/cgroup: one line for each hierarchy in version 1, one in version 2, both where they are
// mixed. The line that tells most counts, since not every hierarchy is delegated to the runtime.
func ParseCgroup(content []byte) (best Cgroup) {
	for line := range bytes.Lines(content) {
		// hierarchy:controllers:path, and the path may have colons.
		_, rest, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(":"))
		_, path, ok := bytes.Cut(rest, []byte(":"))
		if !ok {
			continue
		}
		if found := parsePath(string(path)); found.tells() > best.tells() {
			best = found
		}
	}
	return best
}

func (c Cgroup) tells() (parts int) {
	if c.ContainerID != "" {
		parts += 2
	}
	if c.PodUID != "" {
		parts++
	}
	return parts
}

// parsePath reads the path of a control group, in which a container stands below its pod:
//
//	/kubepods/burstable/pod<uid>/<id>                                                       cgroupfs
//	/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid>.slice/cri-containerd-<id>.scope  systemd
//	/system.slice/containerd.service/kubepods-burstable-pod<uid>.slice:cri-containerd:<id>  cgroupfs names under systemd
//	/system.slice/docker-<id>.scope, /docker/<id>, /machine.slice/libpod-<id>.scope/container
//
// Where containers are nested, the pod nearest to the process counts and the container right below it, which is the one
// that its kubelet knows; without a pod, the container nearest to the process.
func parsePath(path string) (found Cgroup) {
	for path != "" {
		end := strings.IndexAny(path, "/:")
		segment := path
		if end < 0 {
			path = ""
		} else {
			segment, path = path[:end], path[end+1:]
		}
		if uid := podUID(segment); uid != "" {
			found = Cgroup{PodUID: uid}
		} else if id := containerID(segment); id != "" && (found.PodUID == "" || found.ContainerID == "") {
			found.ContainerID = id
		}
	}
	return found
}

// containerID returns the id in <id> and <runtime>-<id>.scope. The monitor which a runtime keeps beside a container
// (crio-conmon-<id>) runs outside of it.
func containerID(segment string) string {
	segment = strings.TrimSuffix(segment, ".scope")
	runtime := ""
	if at := strings.LastIndexByte(segment, '-'); at >= 0 {
		runtime, segment = segment[:at], segment[at+1:]
	}
	if len(segment) != containerIDLength || !isHex(segment) || strings.HasSuffix(runtime, "conmon") {
		return ""
	}
	return segment
}

// podUID returns the uid in pod<uid> and kubepods-burstable-pod<uid>.slice, in which systemd has _ for -.
func podUID(segment string) string {
	segment = strings.TrimSuffix(segment, ".slice")
	at := strings.LastIndex(segment, "pod")
	if at < 0 || at > 0 && segment[at-1] != '-' {
		return ""
	}
	uid := segment[at+len("pod"):]
	switch len(uid) {
	case 32: // a static pod's hash
		if isHex(uid) {
			return uid
		}
	case 36:
		uid = strings.ReplaceAll(uid, "_", "-")
		if isUUID(uid) {
			return uid
		}
	}
	return ""
}

func isUUID(s string) bool {
	for i := range len(s) {
		switch i {
		case 8, 13, 18, 23:
			if s[i] != '-' {
				return false
			}
		default:
			if !isHexDigit(s[i]) {
				return false
			}
		}
	}
	return true
}

func isHex(s string) bool {
	for i := range len(s) {
		if !isHexDigit(s[i]) {
			return false
		}
	}
	return true
}

func isHexDigit(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' }
