// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"context"
	"path/filepath"

	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
)

// scrape reads the groups that are due, tells the guard, and lets what was read wait for the consumer of metrics: with the groups that
// it was not given before, for want of room. An error means that the session is over.
func (e *engine) scrape(ctx context.Context, due int) error {
	room := e.room(ctx)
	if room {
		due |= e.handoff.owed
	}
	p, s := &e.plans[due], &e.snapshot
	begin := e.now()
	s.Reset()
	e.asking.Store(e.now().UnixNano())
	err := e.source.Read(ctx, &p.read, s)
	e.asking.Store(0)
	if err != nil {
		e.own.scraped(ctx, p.name, false, e.now().Sub(begin))
		return err
	}
	if ctx.Err() != nil { // it may have taken so long that nobody waits for it any more
		return ctx.Err()
	}
	now := e.now().UnixNano()
	beyond := e.complete()
	e.tellGuard(now)
	e.mu.Lock()
	e.book.Read(s, now)
	changes := e.book.Take()
	if room {
		e.handoff.owed = 0
		e.put(e.writer.write(s, &e.book, e.who, p, now))
		if e.cfg.DCGMExporterNames && e.metrics != nil {
			e.put(e.asDCGMExporter(due, now))
		}
	} else {
		e.handoff.owed |= due
	}
	for i := range changes {
		e.changed(&changes[i], now)
	}
	e.mu.Unlock()
	e.recovered()
	e.own.connected.Store(1)
	e.own.scraped(ctx, p.name, true, e.now().Sub(begin))
	e.own.saw(ctx, s, p, beyond)
	return nil
}

// complete adds what the source cannot know, and returns how many processes are beyond the limit.
func (e *engine) complete() (beyond int) {
	s := &e.snapshot
	for _, d := range s.Devices {
		if d.Unified && !d.MIG() {
			root := e.cfg.ProcRoot
			if root == "" {
				root = "/proc"
			}
			if total, used, ok := hostMemory(filepath.Join(root, "meminfo")); ok {
				d.SetInt(gpu.MemoryLimit, total)
				d.SetInt(gpu.MemoryUsage, used)
			}
		}
	}
	s.Derive()
	for _, d := range s.Devices {
		beyond += bound(d, e.cfg.MaxProcesses)
	}
	return beyond
}
