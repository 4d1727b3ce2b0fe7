// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-llm/otelcol-llm/internal/emit"
	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/internal/strict"
)

// The values of the setting source.
const (
	sourceAuto = "auto"
	sourceNVML = "nvml"
	sourceDCGM = "dcgm"
)

// Config is the configuration of the nvidia_gpu receiver.
type Config struct {
	// CollectionInterval is how often the cheap group is read, and the others where they have no interval of their own.
	CollectionInterval time.Duration `mapstructure:"collection_interval"`
	// ProcessInterval is how often processes are read; 0 is CollectionInterval.
	ProcessInterval time.Duration `mapstructure:"process_interval"`
	// ExpensiveInterval is how often profiling and what takes the driver long is read; 0 is CollectionInterval.
	ExpensiveInterval time.Duration `mapstructure:"expensive_interval"`
	// RetryInterval is how often a library or a driver that is not there is looked for.
	RetryInterval time.Duration `mapstructure:"retry_interval"`
	// Source is the library that is asked: nvml; dcgm; or auto, NVML for all but profiling, and for that DCGM where it is there
	// and else NVML's GPM.
	Source string `mapstructure:"source"`
	// NVMLLibrary is the path of libnvidia-ml.so.1. Empty is where the system has it.
	NVMLLibrary string `mapstructure:"nvml_library"`
	// DCGMLibrary is the path of libdcgm.so.4. Empty is where the system has it.
	DCGMLibrary string `mapstructure:"dcgm_library"`
	// DCGMEndpoint is a running nv-hostengine: host:port, or unix:///path. Empty is the usual port of this machine, and, where
	// nothing answers there, an engine inside of this process: if Source is dcgm, or DCGMLibrary is set.
	DCGMEndpoint string `mapstructure:"dcgm_endpoint"`
	// KubeletSocket is the kubelet's socket for pod resources, by which a process is named after its pod. Empty, or a path where
	// nothing is, does without.
	KubeletSocket string `mapstructure:"kubelet_socket"`
	// KubeletLogs is the directory in which the kubelet has a link for the log of each container, by which a container's id is
	// named. Empty does without.
	KubeletLogs string `mapstructure:"kubelet_logs"`
	// ProcRoot is the host's /proc, for a Collector in a container with PIDs of its own. Empty is /proc, where that is the host's.
	ProcRoot string `mapstructure:"proc_root"`
	// MaxProcesses bounds the processes of a device that are told one by one. What comes beyond, those that hold the least, is
	// told together.
	MaxProcesses int `mapstructure:"max_processes"`
	// ReleaseWindow is how long all handles are given back after a SIGUSR1, so that a device can be reset, unbound or divided
	// otherwise. 0 does not listen to the signal.
	ReleaseWindow time.Duration `mapstructure:"release_window"`
	// DCGMExporterNames also writes what dcgm-exporter would: DCGM_FI_DEV_GPU_TEMP and its kin, in its units and with its labels.
	DCGMExporterNames bool `mapstructure:"dcgm_exporter_names"`
	// Guard is the id of a gpu_guard extension that is told of each reading. Nil tells nobody.
	Guard *component.ID `mapstructure:"guard"`
	// Metrics switches single metrics on and off.
	Metrics emit.Settings `mapstructure:"metrics"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Unmarshal refuses null values besides what the Collector refuses.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return strict.Unmarshal(conf, c) }

// shortest is below what anybody needs; the utilization of NVML is an average over at least that long.
const shortest = 100 * time.Millisecond

// Validate reports every problem at once, each with its key.
func (c *Config) Validate() error {
	var errs []error
	for _, interval := range []struct {
		key      string
		value    time.Duration
		zeroIsOK bool
	}{
		{"collection_interval", c.CollectionInterval, false},
		{"process_interval", c.ProcessInterval, true},
		{"expensive_interval", c.ExpensiveInterval, true},
		{"retry_interval", c.RetryInterval, false},
	} {
		if interval.value < shortest && (interval.value != 0 || !interval.zeroIsOK) {
			errs = append(errs, fmt.Errorf("%s: %s must be at least %s", interval.key, interval.value, shortest))
		}
	}
	switch c.Source {
	case sourceAuto, sourceNVML, sourceDCGM:
	default:
		errs = append(errs, fmt.Errorf("source: %q is none of auto, nvml, dcgm", c.Source))
	}
	if c.Source == sourceNVML && (c.DCGMLibrary != "" || c.DCGMEndpoint != "") {
		errs = append(errs, errors.New("source: nvml never asks DCGM: write auto or dcgm, or remove dcgm_library and dcgm_endpoint"))
	}
	if c.Source == sourceDCGM && c.NVMLLibrary != "" {
		errs = append(errs, errors.New(`source: dcgm never asks NVML: write auto or nvml, or remove nvml_library, or set it to ""`))
	}
	errs = append(errs, checkEndpoint(c.DCGMEndpoint))
	for _, path := range []struct{ key, value, like string }{
		{"kubelet_socket", c.KubeletSocket, defaultKubeletSocket},
		{"kubelet_logs", c.KubeletLogs, defaultKubeletLogs},
		{"proc_root", c.ProcRoot, "/host/proc"},
	} {
		if path.value != "" && !filepath.IsAbs(path.value) {
			errs = append(errs, fmt.Errorf("%s: %q is no absolute path, e.g. %s", path.key, path.value, path.like))
		}
	}
	if c.MaxProcesses < 1 {
		errs = append(errs, fmt.Errorf("max_processes: %d must be at least 1", c.MaxProcesses))
	}
	if c.ReleaseWindow < 0 {
		errs = append(errs, fmt.Errorf("release_window: %s must not be negative", c.ReleaseWindow))
	}
	errs = append(errs, c.Metrics.Check(table))
	return errors.Join(errs...)
}

const unixScheme = "unix://"

// checkEndpoint says what is wrong with a dcgm_endpoint.
func checkEndpoint(endpoint string) error {
	if endpoint == "" {
		return nil
	}
	if path, unix := strings.CutPrefix(endpoint, unixScheme); unix {
		if !strings.HasPrefix(path, "/") {
			return fmt.Errorf("dcgm_endpoint: %q: %q is no absolute path, e.g. unix:///run/nvidia-hostengine/socket", endpoint, path)
		}
		return nil
	}
	host, port, err := net.SplitHostPort(endpoint)
	if err != nil || host == "" || port == "" || strings.HasPrefix(port, "/") {
		return fmt.Errorf("dcgm_endpoint: %q is neither host:port, e.g. localhost:5555, nor unix:///path", endpoint)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("dcgm_endpoint: %q: the port %q is not in 1…65535", endpoint, port)
	}
	return nil
}

// interval is how often a group is read.
func (c *Config) interval(g gpu.Group) time.Duration {
	switch {
	case g == gpu.PerProcess && c.ProcessInterval > 0:
		return c.ProcessInterval
	case g == gpu.Expensive && c.ExpensiveInterval > 0:
		return c.ExpensiveInterval
	}
	return c.CollectionInterval
}
