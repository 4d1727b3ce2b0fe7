// SPDX-License-Identifier: Apache-2.0

package emit

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-llm/otelcol-llm/internal/labels"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// Label writes the canonical labels of an SLO and those of a group of its events, and the tenant where the group tells it: under that
// name, else under tenantKey. What stands for all for which there was no room is marked.
func Label(m pcommon.Map, slo *openslo.SLO, target string, of interface {
	Group(f func(key, value string))
}, tenantKey string, overflow bool) {
	m.EnsureCapacity(12)
	m.PutStr(labels.SLOID, slo.ID)
	m.PutStr(labels.Service, slo.Service)
	m.PutStr(labels.Class, string(slo.Class))
	m.PutStr(labels.Target, target)
	m.PutStr(labels.Unit, slo.Unit)
	var tenant string
	of.Group(func(key, value string) {
		m.PutStr(key, value)
		if key == labels.Tenant || (key == tenantKey && tenant == "") {
			tenant = value
		}
	})
	if tenant != "" {
		m.PutStr(labels.Tenant, tenant)
	}
	if overflow {
		m.PutBool("otel.metric.overflow", true)
	}
}
