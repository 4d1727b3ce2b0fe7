// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"path/filepath"

	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/receiver/nvidiagpureceiver/internal/autosource"
	"github.com/otelcol-llm/otelcol-llm/receiver/nvidiagpureceiver/internal/dcgmsource"
	"github.com/otelcol-llm/otelcol-llm/receiver/nvidiagpureceiver/internal/nvmlsource"
)

// newSource returns the source that the settings ask for.
func newSource(cfg *Config, log *zap.Logger) gpu.Source {
	dcgm := dcgmsource.Options{Library: cfg.DCGMLibrary, Endpoint: cfg.DCGMEndpoint, Interval: cfg.interval, Points: gpu.Profiled}
	switch cfg.Source {
	case sourceNVML:
		return newNVML(cfg, log)
	case sourceDCGM:
		dcgm.Embedded = true
		for p := range gpu.DevicePoints {
			dcgm.Points.Add(p)
		}
		return dcgmsource.New(dcgm)
	}
	// An engine inside of this process is not begun unasked: it has threads and modules of its own, and whoever has one on the
	// machine could not profile any more.
	dcgm.Embedded = cfg.DCGMLibrary != ""
	return autosource.New(newNVML(cfg, log), dcgmsource.New(dcgm), cfg.RetryInterval, tellsOfDCGM(log))
}

func newNVML(cfg *Config, log *zap.Logger) gpu.Source {
	proc := cfg.ProcRoot
	if proc == "" {
		proc = "/proc"
	}
	return nvmlsource.New(nvmlsource.Options{
		Library: cfg.NVMLLibrary, Listing: filepath.Join(proc, "driver", "nvidia", "gpus"), Look: cfg.RetryInterval,
		Deaf: func(gpus []string) {
			log.Warn("the driver does not tell Xids: nvidia.gpu.xid is not told of these GPUs", zap.Strings("gpus", gpus))
		},
	})
}

// tellsOfDCGM tells the operator who does the profiling, when that changes.
func tellsOfDCGM(log *zap.Logger) func(error) {
	last := ""
	return func(err error) {
		text := "DCGM does the profiling"
		if err != nil {
			text = err.Error()
		}
		if text == last {
			return
		}
		last = text
		if err == nil {
			log.Info(text)
		} else {
			log.Info("DCGM does not do the profiling; NVML's GPM does, where a GPU has it", zap.Error(err))
		}
	}
}
