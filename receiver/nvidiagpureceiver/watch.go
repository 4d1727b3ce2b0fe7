// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
)

// watch looks after the one that reads, until the context ends: a driver can block in a call, and then nobody else would say so.
func (e *engine) watch(ctx context.Context) {
	tick := time.NewTicker(max(e.overdue/16, time.Millisecond))
	defer tick.Stop()
	var told int64
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		since := e.asking.Load()
		if since == 0 || since == told || e.now().Sub(time.Unix(0, since)) < e.overdue {
			continue
		}
		told = since
		e.late()
	}
}

// late says that the driver does not answer, and ends the series: what was read before is not so any more, for all that is known.
// When it answers, they begin anew.
func (e *engine) late() {
	e.own.closed()
	e.endSeries()
	err := fmt.Errorf("the driver has not answered for %s: a call of it blocks, and nothing is read or given back until it returns", e.overdue)
	if e.health.Failed(err) {
		e.log.Warn("no GPU is read: the driver does not answer", zap.Error(err))
	}
}
