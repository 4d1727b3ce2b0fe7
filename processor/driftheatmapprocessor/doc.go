// SPDX-License-Identifier: Apache-2.0

// Package driftheatmapprocessor shows which promise of an slo_catalog drifts, for whom and since when: every SLO in every
// combination of some dimensions is held against what was promised and what was normal. What comes in is passed on as it is.
//
//	processors:
//	  drift_heatmap:
//	    dimensions: [tenant, cloud.region, device.type, model.version]
//	service:
//	  extensions: [slo_catalog]
//	  pipelines:
//	    metrics: {receivers: [otlp], processors: [drift_heatmap], exporters: [prometheus]}
package driftheatmapprocessor
