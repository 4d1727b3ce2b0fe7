// SPDX-License-Identifier: Apache-2.0

package slocatalogextension

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.uber.org/zap"
)

// watch reads the files again when they have changed, until the context ends.
func (e *sloCatalog) watch(ctx context.Context, host component.Host) {
	ticker := time.NewTicker(e.cfg.ReloadInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			e.reload(ctx, host)
		}
	}
}

// reload takes over what the files say now. While something in them is wrong, the last good catalog stays, and the
// component's status says so.
func (e *sloCatalog) reload(ctx context.Context, host component.Host) {
	seen := fingerprint(e.cfg.Paths)
	if settled := seen == e.last; !settled || seen == e.seen {
		e.last = seen // somebody may still be writing: what is read must have been the same for an interval
		return
	}
	e.seen = seen
	c, err := load(e.cfg.Paths)
	if err == nil && len(c.SLOs) == 0 && len(e.Catalog().SLOs) > 0 {
		err = errors.New("there is no SLO left in the files: to end all promises, stop the Collector or remove the extension")
	}
	if err != nil {
		err = explain(err)
		e.telemetry.failures.Add(ctx, 1)
		e.set.Logger.Error("the SLO files have changed but are not used; the catalog before them stays", zap.Error(err))
		e.report(host, componentstatus.NewRecoverableErrorEvent(err))
		e.failing = true
		return
	}
	e.telemetry.loads.Add(ctx, 1)
	e.current.Store(c)
	e.announce(c)
	if e.failing {
		e.report(host, componentstatus.NewEvent(componentstatus.StatusOK))
		e.failing = false
	}
}

// notifier is what the host of a running Collector can do for an extension. It hands extensions no componentstatus.Reporter
// (service v0.149.0, extensions.go), so an event given to ReportStatus would be lost.
type notifier interface {
	NotifyComponentStatusChange(source *componentstatus.InstanceID, event *componentstatus.Event)
}

// report tells the Collector how the extension is, for health checks to show.
func (e *sloCatalog) report(host component.Host, event *componentstatus.Event) {
	if n, ok := host.(notifier); ok {
		n.NotifyComponentStatusChange(componentstatus.NewInstanceID(e.id, component.KindExtension), event)
		return
	}
	componentstatus.ReportStatus(host, event)
}
