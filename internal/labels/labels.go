// SPDX-License-Identifier: Apache-2.0

// Package labels names the attributes by which everything that belongs to an SLO is known, in every component and in
// one spelling.
package labels

// The canonical labels: data point attributes on everything that is derived from an SLO.
const (
	SLOID   = "slo_id"    // domain:service:metric:objective, e.g. llm:chat:ttft:p95
	Service = "service"   // service name
	Class   = "slo_class" // latency, availability, throughput, quality, cost or saturation
	Target  = "target"    // the objective's number in Unit, with four decimals
	Unit    = "unit"      // OpenMetrics base unit of Target
)

const (
	// Tenant stands beside the canonical labels wherever it is known.
	Tenant = "tenant"
	// SLOIDs lists all SLOs of what belongs to several; the canonical labels are those of the first.
	SLOIDs = "slo.ids"
)

// Canonical are the canonical labels in the order in which they are written.
var Canonical = [5]string{SLOID, Service, Class, Target, Unit}
