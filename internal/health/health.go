// SPDX-License-Identifier: Apache-2.0

// Package health is the status of a component that goes on while what it needs is away.
package health

import (
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
)

// Health is the status of a component, in the eyes of every instance's host. The zero Health has nothing to say yet. It is safe for
// concurrent use.
type Health struct {
	mu    sync.Mutex
	hosts []component.Host
	event *componentstatus.Event // the last
	text  string                 // of the error that lasts; empty where there is none
}

// Join adds a host, which hears what the others have heard.
func (h *Health) Join(host component.Host) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hosts = append(h.hosts, host)
	if h.event != nil {
		componentstatus.ReportStatus(host, h.event)
	}
}

// Failed reports an error that may pass. It is false where that was reported before.
func (h *Health) Failed(err error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.text == err.Error() {
		return false
	}
	h.text = err.Error()
	h.report(componentstatus.NewRecoverableErrorEvent(err))
	return true
}

// Recovered reports that all is well. It is false where it was before.
func (h *Health) Recovered() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.text == "" && h.event != nil {
		return false
	}
	h.text = ""
	h.report(componentstatus.NewEvent(componentstatus.StatusOK))
	return true
}

// Text is that of the error that lasts; empty where there is none.
func (h *Health) Text() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text
}

func (h *Health) report(event *componentstatus.Event) {
	h.event = event
	for _, host := range h.hosts {
		componentstatus.ReportStatus(host, event)
	}
}
