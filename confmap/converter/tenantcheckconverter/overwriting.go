// SPDX-License-Identifier: Apache-2.0

package tenantcheckconverter

import (
	"errors"
	"fmt"

	"github.com/otelcol-llm/otelcol-llm/internal/labels"
)

// conversion is the setting of the exporters for Prometheus that makes labels of all attributes of a resource.
const conversion = "resource_to_telemetry_conversion"

// overwriting names the exporters in which tenants would overwrite each other.
func (c config) overwriting() error {
	var errs []error
	refused := map[string]bool{}
	for _, name := range c.ofSeveral() {
		p := c.pipeline(name)
		tenant := c.after(p)
		if tenant.points {
			continue
		}
		for _, exporter := range texts(p["exporters"]) {
			if !c.merges(exporter, tenant) || refused[exporter] {
				continue
			}
			refused[exporter] = true
			errs = append(errs, fmt.Errorf("exporters::%s: pipeline %s brings it the series of several tenants, and those of services with the same "+
				"name would overwrite each other: set %s: {enabled: true}, or put the tenant on the points before it, by a transform processor with "+
				`set(datapoint.attributes[%q], resource.attributes[%q])`, exporter, name, conversion, labels.Tenant, labels.Tenant))
		}
	}
	return errors.Join(errs...)
}

// merges reports whether series that differ in their tenants only are one to an exporter. Remote write is as the prometheus exporter,
// unless it sends each tenant's to its own database.
func (c config) merges(exporter string, tenant kept) bool {
	of := mapAt(c, "exporters", exporter)
	if enabled, _ := mapAt(of, conversion)["enabled"].(bool); enabled && tenant.resource {
		return false
	}
	switch typeOf(exporter) {
	case "prometheus":
		return true
	case "prometheusremotewrite":
		authenticator, _ := mapAt(of, "auth")["authenticator"].(string)
		return typeOf(authenticator) != headersType
	default:
		return false
	}
}
