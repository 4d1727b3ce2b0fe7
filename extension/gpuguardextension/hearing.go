// SPDX-License-Identifier: Apache-2.0

package gpuguardextension

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component/componentstatus"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/watch"
	"github.com/otelcol-llm/otelcol-llm/internal/gpuwatch"
)

// silence is how long it is waited for somebody who tells something.
const silence = time.Minute

// hearing is what is known of who tells the guard, and what the operator was told of that.
type hearing struct {
	found, told, live atomic.Bool // somebody looked for this guard, and told something, and live bytes
	elsewhere         atomic.Bool // it was said that a verdict is not about this machine

	// The rest is of the one goroutine that acts.
	since                    time.Time
	alone                    bool // nobody tells it anything
	quiet, partial, unplaced bool // that was said
}

// Found is called when a component has found this guard, which it is going to tell what it sees.
func (e *gpuGuard) Found() { e.hearing.found.Store(true) }

const partly = "of live bytes alone it is not known what was allocated before the Collector, or cuda_memory, was started: let nvidia_gpu tell the guard, too"

// listen tells the operator what the guard cannot see, once each.
func (e *gpuGuard) listen(now time.Time) {
	h := &e.hearing
	if now.Sub(h.since) < silence {
		return
	}
	found, told := h.found.Load(), h.told.Load()
	if alone := !found && !told; alone != h.alone {
		h.alone = alone
		if alone {
			e.log.Warn("nobody tells the guard anything, so that it does nothing: write guard: " + e.set.ID.String() + " under nvidia_gpu or cuda_memory")
		}
		e.report()
	}
	if found && !told && !h.quiet {
		h.quiet = true
		e.log.Warn("nothing was told to the guard so far: it sees no GPU, and no process that allocates")
	}
	var read bool
	var unplaced int
	e.guard.Tell(func(s *watch.State, _ int64) { read, unplaced = s.Read(), s.Unplaced() })
	if h.live.Load() && !read && !h.partial {
		h.partial = true
		e.log.Warn(partly)
	}
	if unplaced > 0 && !read && !h.unplaced {
		h.unplaced = true
		e.log.Warn("it is not known on which device these processes hold memory, so that it counts for none: let nvidia_gpu tell the guard, too, or set device_count: 1 where there is only one",
			zap.Int("processes", unplaced))
	}
}

// report tells the Collector how the guard is.
func (e *gpuGuard) report() {
	var errs []error
	if e.failing != nil {
		errs = append(errs, e.failing)
	}
	if e.hearing.alone && !e.cfg.DryRun {
		errs = append(errs, errors.New("nobody tells the guard anything: no receiver has its setting guard"))
	}
	if len(errs) > 0 {
		componentstatus.ReportStatus(e.host, componentstatus.NewRecoverableErrorEvent(errors.Join(errs...)))
		return
	}
	componentstatus.ReportStatus(e.host, componentstatus.NewEvent(componentstatus.StatusOK))
}

// ignored tells the operator of the first verdict that is not about this machine, as far as is known.
func (e *gpuGuard) ignored(l *gpuwatch.Leak) {
	if l.PID <= 0 || e.hearing.elsewhere.Swap(true) {
		return
	}
	text := "a verdict names no host, and nothing was told of its process: it counts once something is, by nvidia_gpu or cuda_memory"
	if l.Host != "" {
		text = "a verdict is about another machine, and counts for nothing: if it is this one, add its name to host_names"
	}
	e.log.Warn(text, zap.String("host", l.Host), zap.Int("pid", l.PID), zap.String("id", l.ID))
}

// driver is where NVIDIA's tells of its GPUs.
const driver = "/proc/driver/nvidia"

// oneDevice says whether the machine is known to have one GPU that is not divided.
func (c *Config) oneDevice(driver string) bool {
	if c.DeviceCount > 0 {
		return c.DeviceCount == 1
	}
	gpus, err := os.ReadDir(filepath.Join(driver, "gpus"))
	instances, malformed := filepath.Glob(filepath.Join(driver, "capabilities", "gpu*", "mig", "gi*"))
	return err == nil && malformed == nil && len(gpus) == 1 && len(instances) == 0
}
