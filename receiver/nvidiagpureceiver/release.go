// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"
)

// asked are the times at which an operator last asked for the handles, by receiver: a configuration that is read anew, which makes
// another engine, does not take back what was promised.
var asked askedTimes

type askedTimes struct {
	mu sync.Mutex
	at map[component.ID]time.Time
}

func (a *askedTimes) set(id component.ID, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.at == nil {
		a.at = map[component.ID]time.Time{}
	}
	a.at[id] = at
}

func (a *askedTimes) get(id component.ID) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at[id]
}

// release gives the handles back for a while, because an operator asks for it.
func (e *engine) release() {
	text := "all handles of GPUs are given back: they can be reset, unbound or divided otherwise"
	if err := e.close(); err != nil {
		text = fmt.Sprintf("handles of GPUs are given back, but maybe not all: %v", err)
	}
	now := e.now()
	asked.set(e.set.ID, now)
	e.mu.Lock()
	e.book.Excuse()
	e.mu.Unlock()
	e.endSeries()
	e.keepAway(now, text)
}

// keepAsked keeps the handles given back where the engine before this one was asked for them, for what is left of the window as it
// is set now.
func (e *engine) keepAsked() {
	if at := asked.get(e.set.ID); e.now().Before(at.Add(e.cfg.ReleaseWindow)) {
		e.keepAway(at, "all handles of GPUs stay given back, as was asked for before the configuration was read anew")
	}
}

// keepAway opens nothing before the window that began then is over.
func (e *engine) keepAway(since time.Time, text string) {
	e.away = since.Add(e.cfg.ReleaseWindow)
	e.health.Failed(fmt.Errorf("all handles are given back until %s, as SIGUSR1 asks for", e.away.UTC().Format(time.RFC3339)))
	e.log.Info(text, zap.Time("until", e.away))
}
