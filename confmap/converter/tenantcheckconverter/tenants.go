// SPDX-License-Identifier: Apache-2.0

package tenantcheckconverter

import (
	"maps"
	"slices"
	"strings"

	"github.com/otelcol-llm/otelcol-llm/internal/labels"
)

// everybody stands for tenants that no configuration lists.
const everybody = "*"

// says are the connectors whose results say by themselves, on each point, whose they are. What comes out of any other is as of several
// tenants as what goes in.
var says = []string{"slo", "gpu_leak", "tail_latency"}

// ofSeveral are the pipelines of metrics that hold the data of several tenants, as a tenant_routing connector has sorted it, in order
// of name.
func (c config) ofSeveral() []string {
	names := slices.Sorted(maps.Keys(c.pipelines()))
	in := map[string]map[string]bool{} // tenants, by pipeline
	for _, name := range names {
		in[name] = map[string]bool{}
	}
	for grown := true; grown; {
		grown = false
		for _, name := range names {
			before := len(in[name])
			for _, id := range texts(c.pipeline(name)["receivers"]) {
				maps.Copy(in[name], c.from(id, name, in))
			}
			grown = grown || len(in[name]) > before
		}
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return typeOf(name) != "metrics" || !in[name][everybody] && len(in[name]) < 2
	})
}

// from are the tenants whose data a pipeline gets from one of its receivers.
func (c config) from(receiver, pipeline string, in map[string]map[string]bool) map[string]bool {
	all := map[string]bool{}
	switch _, is := mapAt(c, "connectors")[receiver]; {
	case !is, slices.Contains(says, typeOf(receiver)), c.hasDimension(receiver):
	case typeOf(receiver) == connectorType:
		for _, tenant := range c.sortedInto(receiver, pipeline) {
			all[tenant] = true
		}
	default:
		for name := range in {
			if slices.Contains(texts(c.pipeline(name)["exporters"]), receiver) {
				maps.Copy(all, in[name])
			}
		}
	}
	return all
}

// hasDimension reports whether a connector is told to put the tenant on the points it makes, as spanmetrics can be.
func (c config) hasDimension(connector string) bool {
	dimensions, _ := mapAt(c, "connectors", connector)["dimensions"].([]any)
	return slices.ContainsFunc(dimensions, func(d any) bool {
		dimension, _ := d.(map[string]any)
		return dimension["name"] == labels.Tenant
	})
}

// sortedInto are the tenants whose data a tenant_routing connector puts into a pipeline.
func (c config) sortedInto(connector, pipeline string) (tenants []string) {
	signal := typeOf(pipeline)
	of := mapAt(c, "connectors", connector)
	if slices.Contains(texts(mapAt(of, "default_pipelines")[signal]), pipeline) {
		return []string{everybody}
	}
	named := false
	groups, _ := of["groups"].([]any)
	for _, g := range groups {
		group, _ := g.(map[string]any)
		if !slices.Contains(texts(mapAt(group, "pipelines")[signal]), pipeline) {
			continue
		}
		named = true
		for _, tenant := range texts(group["tenants"]) {
			if strings.ContainsAny(tenant, `*?[\`) {
				return []string{everybody}
			}
			tenants = append(tenants, tenant)
		}
	}
	if !named {
		return []string{everybody}
	}
	return tenants
}
