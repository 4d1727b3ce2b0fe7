// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"path"
	"slices"
)

// Reason is why a process is not ended.
type Reason string

// The reasons.
const (
	NoRule       Reason = "no_rule"       // no rule under victims fits
	Protected    Reason = "protected"     // a rule under protected fits
	MaybeOne     Reason = "not_known"     // a rule under protected may fit, or it may be critical: what it asks for is not known
	Critical     Reason = "critical"      // the machine cannot do without it
	Self         Reason = "self"          // the Collector, or what has started it
	Init         Reason = "init"          // PID 1
	KernelThread Reason = "kernel_thread" //
	Ended        Reason = "ended"         // it has ended already
)

// Policy is who may be ended, and who never.
type Policy struct {
	victims, protected []Rule
	self               []int
}

// New reads rules. self are the Collector's PID and those that have started it.
func New(victims, protected []Rule, self ...int) (*Policy, error) {
	p := &Policy{victims: slices.Clone(victims), protected: slices.Clone(protected), self: self}
	var errs []error
	for _, of := range []struct {
		key   string
		rules []Rule
	}{{"victims", p.victims}, {"protected", p.protected}} {
		for i := range of.rules {
			r := &of.rules[i]
			if err := r.compile(); err != nil {
				errs = append(errs, fmt.Errorf("%s[%d]: %w", of.key, i, err))
			}
			if r.Name == "" {
				r.Name = fmt.Sprintf("%s[%d]", of.key, i)
			}
		}
	}
	if len(errs) == 0 && len(p.victims) > 0 {
		for i := range p.protected {
			if p.protected[i].everybody() {
				errs = append(errs, fmt.Errorf("protected[%d]: fits every process, so that no rule under victims could ever make one: narrow it, or remove the victims", i))
			}
		}
	}
	return p, errors.Join(errs...)
}

// Judge says by which rule a process may be ended, or why not, and by which rule. Reason is empty if it may.
func (p *Policy) Judge(f *Facts) (rule string, why Reason) {
	if rule, why = p.Spared(f); why != "" {
		return rule, why
	}
	for i := range p.victims {
		if p.victims[i].fits(f) == yes {
			return p.victims[i].Name, ""
		}
	}
	return "", NoRule
}

// Spared says why a process must not be touched, whether or not a rule makes it a victim. Reason is empty if it may be.
func (p *Policy) Spared(f *Facts) (rule string, why Reason) {
	switch {
	case f.PID <= 1:
		return "", Init
	case slices.Contains(p.self, f.PID):
		return "", Self
	case f.Kernel:
		return "", KernelThread
	case f.Ended:
		return "", Ended
	case f.Critical || isCritical(f):
		return "", Critical
	}
	doubt := ""
	for i := range p.protected {
		switch p.protected[i].fits(f) {
		case yes:
			return p.protected[i].Name, Protected
		case unknown:
			doubt = p.protected[i].Name
		}
	}
	if doubt != "" || f.Path == "" { // without an executable, nobody knows whether the machine can do without it
		return doubt, MaybeOne
	}
	return "", ""
}

// critical are executables without which a machine, a node of a cluster or its GPUs do not work.
var critical = []string{
	"systemd", "systemd-*", "init", "dbus-daemon", "dbus-broker*", "sshd", "sshd-*", "agetty", "login", "udevd",
	"kubelet", "kube-proxy", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd",
	"containerd", "containerd-shim*", "dockerd", "docker-proxy", "crio", "conmon", "podman", "runc", "crun", "nvidia-container-runtime*",
	"slurmd", "slurmstepd", "slurmctld",
	"nvidia-persistenced", "nvidia-fabricmanager", "nv-fabricmanager", "nv-hostengine", "dcgm-exporter", "nvidia-device-plugin",
	"nvidia-cuda-mps-control", "nvidia-cuda-mps-server", "nvidia-imex",
	"Xorg", "Xwayland", "gnome-shell", "kwin_*", "otelcol*",
}

// commLength is as much of a name as the kernel keeps.
const commLength = 15

// isCritical goes by the executable, and by what the process calls itself.
func isCritical(f *Facts) bool {
	return slices.ContainsFunc(critical, func(pattern string) bool {
		if f.Path != "" && globbed(pattern, path.Base(f.Path)) {
			return true
		}
		return f.Comm != "" && (globbed(pattern, f.Comm) || len(f.Comm) == commLength && len(pattern) > commLength && pattern[:commLength] == f.Comm)
	})
}
