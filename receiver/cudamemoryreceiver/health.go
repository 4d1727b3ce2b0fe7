// SPDX-License-Identifier: Apache-2.0

package cudamemoryreceiver

import (
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
)

// health is the status of the component. It is for one goroutine.
type health struct {
	host component.Host
	told bool
	text string // of the error that lasts; empty where there is none
}

// failed reports an error that may pass. It is false where that was reported before.
func (h *health) failed(err error) bool {
	if h.told && h.text == err.Error() {
		return false
	}
	h.told, h.text = true, err.Error()
	componentstatus.ReportStatus(h.host, componentstatus.NewRecoverableErrorEvent(err))
	return true
}

// recovered reports that all is well. It is false where it was before.
func (h *health) recovered() bool {
	if h.told && h.text == "" {
		return false
	}
	h.told, h.text = true, ""
	componentstatus.ReportStatus(h.host, componentstatus.NewEvent(componentstatus.StatusOK))
	return true
}
