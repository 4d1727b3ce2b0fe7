// SPDX-License-Identifier: Apache-2.0

package tenantcheckconverter

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

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
		if c.tenantOnPoints(p) {
			continue
		}
		for _, exporter := range texts(p["exporters"]) {
			if !c.merges(exporter) || refused[exporter] {
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
func (c config) merges(exporter string) bool {
	of := mapAt(c, "exporters", exporter)
	if enabled, _ := mapAt(of, conversion)["enabled"].(bool); enabled {
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

// onPoints is a statement that puts the tenant on points.
var onPoints = regexp.MustCompile(`set\(\s*(?:datapoint\.)?attributes\["` + labels.Tenant + `"\]`)

// tenantOnPoints reports whether a processor of a pipeline puts the tenant on the points.
func (c config) tenantOnPoints(pipeline map[string]any) bool {
	return slices.ContainsFunc(texts(pipeline["processors"]), func(id string) bool {
		return typeOf(id) == "transform" && mentions(mapAt(c, "processors", id)["metric_statements"], onPoints)
	})
}

// mentions reports whether a text anywhere in a value matches.
func mentions(value any, pattern *regexp.Regexp) bool {
	switch v := value.(type) {
	case string:
		return pattern.MatchString(v)
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return mentions(e, pattern) })
	case map[string]any:
		for _, e := range v {
			if mentions(e, pattern) {
				return true
			}
		}
	}
	return false
}
