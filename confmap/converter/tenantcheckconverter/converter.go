// SPDX-License-Identifier: Apache-2.0

package tenantcheckconverter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-llm/otelcol-llm/internal/labels"
)

const (
	connectorType = "tenant_routing"
	exporterType  = "prometheus"
	conversion    = "resource_to_telemetry_conversion"
)

type converter struct{}

// NewFactory returns the factory of the converter.
func NewFactory() confmap.ConverterFactory {
	return confmap.NewConverterFactory(func(confmap.ConverterSettings) confmap.Converter { return converter{} })
}

// Convert changes nothing. Its error names every exporter in which tenants would overwrite each other.
func (converter) Convert(_ context.Context, conf *confmap.Conf) error {
	c := config(conf.ToStringMap())
	var errs []error
	refused := map[string]bool{}
	for _, name := range c.behindRouting() {
		p := c.pipeline(name)
		if c.tenantOnPoints(p) {
			continue
		}
		for _, exporter := range texts(p["exporters"]) {
			if typeOf(exporter) != exporterType || c.convertsResources(exporter) || refused[exporter] {
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

// config is a configuration as it was written. What is not shaped as it should be is the Collector's to say.
type config map[string]any

func (c config) pipelines() map[string]any { return mapAt(c, "service", "pipelines") }

func (c config) pipeline(name string) map[string]any { return mapAt(c.pipelines(), name) }

func (c config) convertsResources(exporter string) bool {
	enabled, _ := mapAt(c, "exporters", exporter, conversion)["enabled"].(bool)
	return enabled
}

// behindRouting are the pipelines of metrics that hold what a tenant_routing connector has sorted, in order of name: those that
// receive from one, and those that receive from what they export to.
func (c config) behindRouting() []string {
	pipelines := c.pipelines()
	connectors := mapAt(c, "connectors")
	var behind []string
	reached := map[string]bool{}
	for id := range connectors {
		reached[id] = typeOf(id) == connectorType
	}
	names := slices.Sorted(maps.Keys(pipelines))
	for more := true; more; {
		more = false
		for _, name := range names {
			p := c.pipeline(name)
			if slices.Contains(behind, name) || !slices.ContainsFunc(texts(p["receivers"]), func(id string) bool { return reached[id] }) {
				continue
			}
			behind, more = append(behind, name), true
			for _, id := range texts(p["exporters"]) {
				// What derives a stream of its own, such as slo, says itself whose it is.
				if _, is := connectors[id]; is && (typeOf(id) == "forward" || typeOf(id) == "routing") {
					reached[id] = true
				}
			}
		}
	}
	behind = slices.DeleteFunc(behind, func(name string) bool { return typeOf(name) != "metrics" || c.oneTenant(name) })
	slices.Sort(behind)
	return behind
}

// oneTenant reports whether groups give a pipeline the data of a single tenant, and nobody gives it that of others.
func (c config) oneTenant(name string) bool {
	tenants := map[string]bool{}
	for id := range mapAt(c, "connectors") {
		if typeOf(id) != connectorType {
			continue
		}
		if slices.Contains(texts(mapAt(c, "connectors", id, "default_pipelines")["metrics"]), name) {
			return false
		}
		groups, _ := mapAt(c, "connectors", id)["groups"].([]any)
		for _, g := range groups {
			group, _ := g.(map[string]any)
			if !slices.Contains(texts(mapAt(group, "pipelines")["metrics"]), name) {
				continue
			}
			for _, tenant := range texts(group["tenants"]) {
				if strings.ContainsAny(tenant, `*?[\`) {
					return false
				}
				tenants[tenant] = true
			}
		}
	}
	return len(tenants) == 1
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

// typeOf is the type of an id: prometheus of prometheus/tenants, metrics of metrics/out.
func typeOf(id string) string {
	name, _, _ := strings.Cut(id, "/")
	return name
}

// mapAt is the map below some keys, empty where there is none.
func mapAt(m map[string]any, keys ...string) map[string]any {
	for _, key := range keys {
		m, _ = m[key].(map[string]any)
	}
	return m
}

// texts are the texts in a list.
func texts(list any) (all []string) {
	elements, _ := list.([]any)
	for _, e := range elements {
		if text, ok := e.(string); ok {
			all = append(all, text)
		}
	}
	return all
}
