// SPDX-License-Identifier: Apache-2.0

// Package sloconnector judges the promises of an slo_catalog on the metrics that pass, and derives what it finds:
// SLIs, events, states and violations as metrics, and violations that open and close as log events.
//
//	connectors:
//	  slo:
//	service:
//	  extensions: [slo_catalog]
//	  pipelines:
//	    metrics: {receivers: [otlp], exporters: [slo]}
//	    metrics/slo: {receivers: [slo], exporters: [prometheus]}
//	    logs/slo: {receivers: [slo], exporters: [otlp_http]}
package sloconnector
