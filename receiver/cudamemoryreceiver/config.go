// SPDX-License-Identifier: Apache-2.0

package cudamemoryreceiver

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-llm/otelcol-llm/internal/emit"
	"github.com/otelcol-llm/otelcol-llm/internal/strict"
	"github.com/otelcol-llm/otelcol-llm/receiver/cudamemoryreceiver/internal/probe"
)

// Config is the configuration of the cuda_memory receiver.
type Config struct {
	// CollectionInterval is how often what was counted is told.
	CollectionInterval time.Duration `mapstructure:"collection_interval"`
	// ScanInterval is how often processes that have loaded CUDA are looked for.
	ScanInterval time.Duration `mapstructure:"scan_interval"`
	// RetryInterval is how often probes are tried that the kernel did not take.
	RetryInterval time.Duration `mapstructure:"retry_interval"`
	// MaxEntries bounds the allocations that are remembered in the kernel until they are freed, over all processes, and so the
	// processes and the threads that are. Each takes 345 bytes of the kernel's memory from the start. What comes beyond is counted
	// as missed and nowhere else, and so is what one process has beyond seven eighths of it.
	MaxEntries uint32 `mapstructure:"max_entries"`
	// MaxProcesses bounds the processes that are told one by one. Of those beyond, the first that came stay, and the live bytes of
	// the others are told together.
	MaxProcesses int `mapstructure:"max_processes"`
	// Libraries are further shared libraries that have CUDA in them, as patterns of path.Match: of the whole path where there is
	// a slash in it, else of the file's name.
	Libraries []string `mapstructure:"libraries"`
	// Events is what is probed besides allocations.
	Events Events `mapstructure:"events"`
	// KubeletSocket is the kubelet's socket for pod resources, by which a process is named after its pod and its device is known.
	// Empty, or a path where nothing is, does without.
	KubeletSocket string `mapstructure:"kubelet_socket"`
	// KubeletLogs is the directory in which the kubelet has a link for the log of each container, by which a container's id is
	// named. Empty does without.
	KubeletLogs string `mapstructure:"kubelet_logs"`
	// ProcRoot is the host's /proc, for a Collector in a container with PIDs of its own. Empty is /proc, where that is the host's.
	ProcRoot string `mapstructure:"proc_root"`
	// AllowUnsafeKernel probes also where the kernel is one of those by which a process crashes that has a seccomp filter.
	AllowUnsafeKernel bool `mapstructure:"allow_unsafe_kernel"`
	// Guard is the extension that is told of each change within milliseconds, a gpu_guard. Nil tells nobody.
	Guard *component.ID `mapstructure:"guard"`
	// Metrics switches single metrics on and off.
	Metrics emit.Settings `mapstructure:"metrics"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Events says what is probed besides allocations.
type Events struct {
	// Launches also probes the launches of kernels, on the path of each.
	Launches bool `mapstructure:"launches"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Unmarshal refuses null values besides what the Collector refuses.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return strict.Unmarshal(conf, c) }

// shortest is below what anybody needs: a guard hears of a change without waiting for an interval.
const shortest = 100 * time.Millisecond

// mostEntries is more than any machine was seen with by far: an engine has thousands of allocations.
const mostEntries = 10_000_000

// Validate reports every problem at once, each with its key.
func (c *Config) Validate() error {
	var errs []error
	for _, interval := range []struct {
		key   string
		value time.Duration
	}{
		{"collection_interval", c.CollectionInterval},
		{"scan_interval", c.ScanInterval},
		{"retry_interval", c.RetryInterval},
	} {
		if interval.value < shortest {
			errs = append(errs, fmt.Errorf("%s: %s must be at least %s", interval.key, interval.value, shortest))
		}
	}
	if c.MaxEntries < 1 {
		errs = append(errs, errors.New("max_entries: 0 must be at least 1"))
	}
	if c.MaxEntries > mostEntries {
		errs = append(errs, fmt.Errorf("max_entries: %d must be at most %d, which take %.1f GB of the kernel's memory", c.MaxEntries, mostEntries, float64(mostEntries)*probe.EntryBytes/1e9))
	}
	if c.MaxProcesses < 1 {
		errs = append(errs, fmt.Errorf("max_processes: %d must be at least 1", c.MaxProcesses))
	}
	for i, pattern := range c.Libraries {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			errs = append(errs, fmt.Errorf("libraries[%d]: %q is no pattern, e.g. libtorch_cuda.so* or /opt/*/libengine.so", i, pattern))
		}
	}
	for _, of := range []struct{ key, value, like string }{
		{"kubelet_socket", c.KubeletSocket, defaultKubeletSocket},
		{"kubelet_logs", c.KubeletLogs, defaultKubeletLogs},
		{"proc_root", c.ProcRoot, "/host/proc"},
	} {
		if of.value != "" && !filepath.IsAbs(of.value) {
			errs = append(errs, fmt.Errorf("%s: %q is no absolute path, e.g. %s", of.key, of.value, of.like))
		}
	}
	errs = append(errs, c.Metrics.Check(names))
	for _, m := range table {
		if set := c.Metrics[m.name].Enabled; m.launches && !c.Events.Launches && set != nil && *set {
			errs = append(errs, fmt.Errorf("metrics::%s: is switched on, and nothing counts it: write events: {launches: true}, too", m.name))
		}
	}
	return errors.Join(errs...)
}
