// SPDX-License-Identifier: Apache-2.0

// Package sloschemaprocessor gives everything that belongs to an SLO the same labels: the data points that the SLOs of an
// slo_catalog are made of, and the series that Sloth, Pyrra and slo-generator have made already.
//
//	processors:
//	  slo_schema:
//	service:
//	  extensions: [slo_catalog]
//	  pipelines:
//	    metrics: {receivers: [prometheus], processors: [slo_schema], exporters: [otlp_http]}
package sloschemaprocessor
