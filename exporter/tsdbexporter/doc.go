// SPDX-License-Identifier: Apache-2.0

// Package tsdbexporter keeps metrics in a Prometheus TSDB inside the Collector and answers PromQL over them, by the
// Prometheus HTTP API.
//
//	exporters:
//	  tsdb:
//	service:
//	  pipelines:
//	    metrics: {receivers: [otlp], exporters: [tsdb]}
package tsdbexporter
