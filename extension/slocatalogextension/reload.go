// SPDX-License-Identifier: Apache-2.0

package slocatalogextension

import (
	"context"
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
	if seen == e.seen {
		return
	}
	e.seen = seen
	c, err := load(e.cfg.Paths)
	if err != nil {
		err = explain(err)
		e.telemetry.failures.Add(ctx, 1)
		e.set.Logger.Error("the SLO files have changed but are not used; the catalog before them stays", zap.Error(err))
		componentstatus.ReportStatus(host, componentstatus.NewRecoverableErrorEvent(err))
		e.failing = true
		return
	}
	e.telemetry.loads.Add(ctx, 1)
	e.current.Store(c)
	e.announce(c)
	if e.failing {
		componentstatus.ReportStatus(host, componentstatus.NewEvent(componentstatus.StatusOK))
		e.failing = false
	}
}
