// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
)

// health is the status of the component, in the eyes of every instance's host. The zero health has nothing to say yet.
type health struct {
	mu    sync.Mutex
	hosts []component.Host
	event *componentstatus.Event // the last
	text  string                 // of the error that lasts; empty where there is none
}

// join adds a host, which hears what the others have heard.
func (h *health) join(host component.Host) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hosts = append(h.hosts, host)
	if h.event != nil {
		componentstatus.ReportStatus(host, h.event)
	}
}

// failed reports an error that may pass. It is false where that was reported before.
func (h *health) failed(err error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.text == err.Error() {
		return false
	}
	h.text = err.Error()
	h.report(componentstatus.NewRecoverableErrorEvent(err))
	return true
}

// recovered reports that all is well. It is false where it was before.
func (h *health) recovered() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.text == "" && h.event != nil {
		return false
	}
	h.text = ""
	h.report(componentstatus.NewEvent(componentstatus.StatusOK))
	return true
}

func (h *health) report(event *componentstatus.Event) {
	h.event = event
	for _, host := range h.hosts {
		componentstatus.ReportStatus(host, event)
	}
}
