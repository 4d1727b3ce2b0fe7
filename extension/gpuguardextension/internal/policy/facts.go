// SPDX-License-Identifier: Apache-2.0

// Package policy says who may be ended, and who never.
//
// Three answers are possible of each rule: it fits, it does not, or that is not known, as of the pod of a process while the
// kubelet does not answer. A process is a victim only if a rule fits, and is protected already if a rule may fit: what is not
// known protects.
package policy

import "path"

// Facts are what is known of a process.
type Facts struct {
	PID   int
	Start uint64 // clock ticks since boot
	// Started is the same in Unix nanoseconds.
	Started int64
	// Ended says that it is a zombie: it holds nothing any more.
	Ended bool
	// Kernel says that it is a thread of the kernel.
	Kernel bool
	// Critical says that the kernel may not end it either when memory runs out: its oom_score_adj is -998 or below, which is how
	// a system marks what it cannot do without.
	Critical bool

	// Path is the executable, empty where that is not known. Comm is what the process calls itself.
	Path, Comm string
	// Command is the command line with spaces between, empty where it is not known.
	Command string
	// Retitled says that the process may have written that itself, in place of what it was started with.
	Retitled bool
	UID      int    // the real one; below 0: not known
	Cgroup   string // path of the control group, empty where it is not known
	// Cgroups are all of its paths, of which in version 1 there may be several.
	Cgroups []string

	ContainerID, PodUID       string
	Namespace, Pod, Container string
}

// Name is the base name of the executable, or what the process calls itself where that is not known.
func (f *Facts) Name() string {
	if f.Path != "" {
		return path.Base(f.Path)
	}
	return f.Comm
}
