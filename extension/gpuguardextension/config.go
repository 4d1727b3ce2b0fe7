// SPDX-License-Identifier: Apache-2.0

package gpuguardextension

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/guard"
	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/policy"
	"github.com/otelcol-llm/otelcol-llm/internal/strict"
)

// Config is the configuration of the extension.
type Config struct {
	// DryRun says what would be done, and does nothing.
	DryRun bool `mapstructure:"dry_run"`
	// Threshold is the share of a device's memory from which on it is too full.
	Threshold float64 `mapstructure:"threshold"`
	// For is how long it must have been too full. 0 acts at once.
	For time.Duration `mapstructure:"for"`
	// OnLeak makes an open leak of gpu_leak a reason to act, however full the device is.
	OnLeak bool `mapstructure:"on_leak"`
	// LeakWithin is how soon nothing may be left of the device, by its verdict, for a leak to be a reason. 0: any leak is one.
	LeakWithin time.Duration `mapstructure:"leak_within"`
	// Policy says who may be ended, and who never.
	Policy PolicyConfig `mapstructure:"policy"`
	// Order is by what one of several victims is chosen; what comes first counts first.
	Order []string `mapstructure:"order"`
	// MinShare is the least share of a device's memory that a process must hold to be ended.
	MinShare float64 `mapstructure:"min_share"`
	// GrowthWindow is how far back growth is measured.
	GrowthWindow time.Duration `mapstructure:"growth_window"`
	// Grace is how long a process may take to end after it was asked to. 0 kills at once.
	Grace time.Duration `mapstructure:"grace"`
	// Method is what follows: kill, or cgroup_kill, which ends all processes of its control group.
	Method string `mapstructure:"method"`
	// CgroupRoot is where control groups of version 2 are mounted.
	CgroupRoot string `mapstructure:"cgroup_root"`
	// MaxActionsPerHour bounds the processes that are ended within any hour.
	MaxActionsPerHour int `mapstructure:"max_actions_per_hour"`
	// Cooldown is how long nobody is ended after somebody was.
	Cooldown time.Duration `mapstructure:"cooldown"`
	// StaleAfter is how old a reading of a device may be to be believed.
	StaleAfter time.Duration `mapstructure:"stale_after"`
	// DeviceMemory is the memory, in bytes, of a device of which no reading tells it. 0: such a device is never too full.
	DeviceMemory int64 `mapstructure:"device_memory"`
	// DeviceCount is how many GPUs this machine has. 0: as many as the driver lists in /proc/driver/nvidia/gpus. With 1, memory of which
	// it is not told on what device it is counts for that one; else for none.
	DeviceCount int `mapstructure:"device_count"`
	// HostNames are further names of this machine in verdicts, besides its host name, machine id and K8S_NODE_NAME.
	HostNames []string `mapstructure:"host_names"`
	// KubeletSocket is the kubelet's socket for pod resources. Empty, or a path where nothing is, does without.
	KubeletSocket string `mapstructure:"kubelet_socket"`
	// KubeletLogs is the directory in which the kubelet has a link for the log of each container. Empty does without.
	KubeletLogs string `mapstructure:"kubelet_logs"`
	// MaxProcesses bounds the processes, and the verdicts, that are remembered. Further ones are counted and never ended.
	MaxProcesses int `mapstructure:"max_processes"`
	// MaxDevices bounds the devices that are remembered. Further ones are counted.
	MaxDevices int `mapstructure:"max_devices"`
	// Audit says where it is written what was done.
	Audit AuditConfig `mapstructure:"audit"`
	// Admin is the endpoint by which people see and stop the guard.
	Admin AdminConfig `mapstructure:"admin"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// PolicyConfig says who may be ended.
type PolicyConfig struct {
	// Victims may be ended. None by default.
	Victims []RuleConfig `mapstructure:"victims"`
	// Protected are never ended, whatever else is said.
	Protected []RuleConfig `mapstructure:"protected"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// RuleConfig fits a process of which each key that is set has one of the values.
type RuleConfig struct {
	// Name is what the audit calls the rule. By default it is its place, victims[0].
	Name string `mapstructure:"name"`
	// Namespace, Pod and Container are what Kubernetes calls where it runs; with * and ?.
	Namespace []string `mapstructure:"namespace"`
	Pod       []string `mapstructure:"pod"`
	Container []string `mapstructure:"container"`
	// ContainerID is that of the runtime, or its first 12 digits and more; with * and ?.
	ContainerID []string `mapstructure:"container_id"`
	// Executable is the base name, or, with a slash in it, the path; with * and ?.
	Executable []string `mapstructure:"executable"`
	// Command are regular expressions that are looked for in the command line.
	Command []string `mapstructure:"command"`
	// Cgroup are control groups, those below included; with * and ? in each part of the path.
	Cgroup []string `mapstructure:"cgroup"`
	// UID are users, by number.
	UID []int `mapstructure:"uid"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// AuditConfig says where actions are recorded.
type AuditConfig struct {
	// File gets one JSON object a line. Beside it, File.state is what outlives a restart. It is required unless DryRun is set.
	File string `mapstructure:"file"`
	// MaxBytes is how large the file becomes before it is set aside.
	MaxBytes int64 `mapstructure:"max_bytes"`
	// Backups are how many files that were set aside are kept.
	Backups int `mapstructure:"backups"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Unmarshal refuses null values besides what the Collector refuses.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return strict.Unmarshal(conf, c) }

var _ component.Config = (*Config)(nil)

var (
	methods = []string{guard.MethodKill, guard.MethodCgroupKill}
	orders  = []string{guard.ByLeak, guard.ByGrowth, guard.ByLive, guard.ByNewest}
)

// Validate names each setting that is wrong and what would be right.
func (c *Config) Validate() error {
	errs := []error{share("threshold", c.Threshold), share("min_share", c.MinShare)}
	for _, of := range []struct {
		key          string
		value, least time.Duration
	}{
		{"for", c.For, 0}, {"grace", c.Grace, 0}, {"cooldown", c.Cooldown, time.Second}, {"stale_after", c.StaleAfter, 100 * time.Millisecond},
		{"growth_window", c.GrowthWindow, time.Second}, {"leak_within", c.LeakWithin, 0},
	} {
		if of.value < of.least {
			errs = append(errs, fmt.Errorf("%s: %s must be at least %s", of.key, of.value, of.least))
		}
	}
	for _, of := range []struct {
		key          string
		value, least int64
	}{
		{"max_actions_per_hour", int64(c.MaxActionsPerHour), 0}, {"max_processes", int64(c.MaxProcesses), 1}, {"max_devices", int64(c.MaxDevices), 1},
		{"device_memory", c.DeviceMemory, 0}, {"device_count", int64(c.DeviceCount), 0}, {"audit::max_bytes", c.Audit.MaxBytes, 4 << 10}, {"audit::backups", int64(c.Audit.Backups), 0},
	} {
		if of.value < of.least {
			errs = append(errs, fmt.Errorf("%s: %d must be at least %d", of.key, of.value, of.least))
		}
	}
	if !slices.Contains(methods, c.Method) {
		errs = append(errs, fmt.Errorf("method: %q is none of %s", c.Method, strings.Join(methods, ", ")))
	}
	for i, by := range c.Order {
		if !slices.Contains(orders, by) {
			errs = append(errs, fmt.Errorf("order[%d]: %q is none of %s", i, by, strings.Join(orders, ", ")))
		} else if slices.Contains(c.Order[:i], by) {
			errs = append(errs, fmt.Errorf("order[%d]: %q is there twice", i, by))
		}
	}
	if len(c.Order) == 0 {
		errs = append(errs, fmt.Errorf("order: is empty: write one or more of %s", strings.Join(orders, ", ")))
	}
	for _, of := range []struct{ key, value, like string }{
		{"cgroup_root", c.CgroupRoot, defaultCgroupRoot}, {"kubelet_socket", c.KubeletSocket, defaultKubeletSocket}, {"kubelet_logs", c.KubeletLogs, defaultKubeletLogs},
	} {
		if !filepath.IsAbs(of.value) && (of.value != "" || of.key == "cgroup_root") {
			errs = append(errs, fmt.Errorf("%s: %q is no absolute path, e.g. %s", of.key, of.value, of.like))
		}
	}
	if !c.DryRun {
		if c.Audit.File == "" {
			errs = append(errs, errors.New("audit::file: is required with dry_run: false: what is done is on record, and a restart does not give a new budget"))
		}
		if len(c.Policy.Victims) == 0 {
			errs = append(errs, errors.New("policy::victims: is empty, so nobody would ever be ended: say who may be, or leave dry_run on"))
		}
	}
	if _, err := c.policy(); err != nil {
		errs = append(errs, fmt.Errorf("policy: %w", err))
	}
	return errors.Join(append(errs, c.Admin.check()...)...)
}

func share(key string, value float64) error {
	if math.IsNaN(value) || value <= 0 || value > 1 {
		return fmt.Errorf("%s: %v is not in (0, 1]: write e.g. 0.85", key, value)
	}
	return nil
}

// policy is the policy, by which self are the Collector and those that have started it.
func (c *Config) policy(self ...int) (*policy.Policy, error) {
	return policy.New(rules(c.Policy.Victims), rules(c.Policy.Protected), self...)
}

func rules(of []RuleConfig) (all []policy.Rule) {
	for _, r := range of {
		all = append(all, policy.Rule{
			Name: r.Name, Namespace: r.Namespace, Pod: r.Pod, Container: r.Container, ContainerID: r.ContainerID, Executable: r.Executable,
			Command: r.Command, Cgroup: r.Cgroup, UID: r.UID,
		})
	}
	return all
}
