// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"
)

// explain says what is missing.
func explain(err error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("%w: %s", ErrPermission, lacking(err))
	case errors.Is(err, unix.ENOMEM), errors.Is(err, unix.E2BIG):
		return fmt.Errorf("%w: %w", ErrMemory, err)
	case errors.Is(err, ebpf.ErrNotSupported), errors.Is(features.HaveBPFLinkUprobeMulti(), ebpf.ErrNotSupported):
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return err
}

// initialNamespace refuses a proc file system with other process ids than those that the kernel tells the programs.
func initialNamespace(root string) error {
	name := root + "/1/ns/pid"
	namespace, err := os.Readlink(name)
	if err != nil && root == "/proc" {
		name = "/proc/self/ns/pid"
		namespace, err = os.Readlink(name)
	}
	if err != nil {
		return nil //nolint:nilerr // may not be read, or is not there, which Scan says
	}
	// PROC_PID_INIT_INO of the kernel.
	if namespace != "pid:[4026531836]" {
		return fmt.Errorf("%w: %s is %s", ErrNamespace, name, namespace)
	}
	return nil
}

// safe refuses a kernel of which a process can crash that returns from a function that is probed.
func safe() error {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return nil //nolint:nilerr // it is one that is not known to be so
	}
	if release := unix.ByteSliceToString(name.Release[:]); runtime.GOARCH == "amd64" && crashes(release) {
		return fmt.Errorf("%w: of Linux %s, unless its maker has mended it: 6.12.14, 6.13.3 and 6.14 are without, and so is all before 6.11", ErrUnsafe, release)
	}
	return nil
}

// crashes says whether a kernel takes the system call by which a function that is probed returns (uretprobe, from 6.11 on) for one of the
// process, which a seccomp filter then forbids. https://git.kernel.org/torvalds/c/cf6cb56ef244 mended it.
func crashes(release string) bool {
	var major, minor, patch int
	n, _ := fmt.Sscanf(release, "%d.%d.%d", &major, &minor, &patch) // 6.12-rc1 has no third one
	if n < 2 || major != 6 {
		return false
	}
	return minor == 11 || minor == 12 && patch < 14 || minor == 13 && patch < 3
}

// MayLook says whether this process has the capability to look at all others, as far as is known.
func MayLook() bool {
	have, ok := effective()
	return !ok || have&(1<<unix.CAP_SYS_PTRACE) != 0
}

// affordable refuses what would take more than half of the machine's memory: the kernel would rather end processes for it.
func affordable(entries uint32) error {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return nil //nolint:nilerr // then the kernel has the say
	}
	total, need := info.Totalram*uint64(info.Unit), uint64(entries)*EntryBytes
	if need > total/2 {
		return fmt.Errorf("%w: they take %d MiB, and this machine has %d MiB: at most %d take half of it", ErrMemory, need>>20, total>>20, total/2/EntryBytes)
	}
	return nil
}

// lacking says which of the capabilities is not there. What the library says of an error is left out where it is about a limit
// (MEMLOCK) that the kernels on which this runs do not have.
func lacking(err error) string {
	have, ok := effective()
	if !ok {
		return err.Error()
	}
	var missing []string
	for _, c := range []struct {
		bit  int
		name string
	}{{unix.CAP_BPF, "CAP_BPF"}, {unix.CAP_PERFMON, "CAP_PERFMON"}} {
		if have&(1<<c.bit|1<<unix.CAP_SYS_ADMIN) == 0 {
			missing = append(missing, c.name)
		}
	}
	switch {
	case len(missing) > 0:
		return strings.Join(missing, " and ") + map[int]string{1: " is", 2: " are"}[len(missing)] + " missing"
	case errors.Is(err, unix.EPERM):
		return "they are there, but something else forbids it: seccomp, lockdown or a security module"
	}
	return err.Error()
}

// effective is the capabilities of this process, a bit each.
func effective() (bits uint64, ok bool) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return 0, false
	}
	return uint64(data[0].Effective) | uint64(data[1].Effective)<<32, true
}
