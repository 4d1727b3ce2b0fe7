// SPDX-License-Identifier: Apache-2.0

// Package tenantroutingconnector sends every tenant's telemetry on by itself: one route for all of them, whoever comes and
// goes, with a queue, a retry and limits for each, so that nobody sees or starves another.
//
//	connectors:
//	  tenant_routing:
//	service:
//	  pipelines:
//	    metrics: {receivers: [otlp], exporters: [tenant_routing]}
//	    metrics/tenants: {receivers: [tenant_routing], exporters: [otlp_http]}
package tenantroutingconnector
