// SPDX-License-Identifier: Apache-2.0

// Package openslo reads SLO files: OpenSLO v1 documents, and the ViolationPolicy and MaintenanceWindow kinds of this project.
//
// Plain structs in, problems with positions out. The package knows nothing of the Collector: a Catalog is
// what a set of files promises once every reference is resolved and every unit is converted, and a Problem
// says where a file is wrong and what would be right. Every problem of every file is reported at once.
//
// The specification is https://github.com/OpenSLO/OpenSLO (apiVersion openslo/v1); what it cannot say
// stands in annotations below [AnnotationPrefix].
//
// # Derivations
//
// What a file leaves out is derived, by the first rule that applies:
//
//   - Domain: the label metadata.labels.domain; else llm.
//   - Objective's name: the target in percent without trailing zeros; p95, p99.9 for a thresholdMetric,
//     99.95 for a ratioMetric.
//   - slo_id: the annotation slo-id, of four parts, or of three where the SLO has several objectives (the
//     objective's name is appended); else domain:service:indicator:objective, and for the parts of a composite
//     domain:service:slo:indicator-objective, with the name of the SLO document. The composite as a whole has the
//     objective composite.
//   - Unit of a ratioMetric: ratio.
//   - Unit of a thresholdMetric: the base unit of metricSource.spec.unit; the annotation unit; the base unit
//     that the metric's name ends in (_seconds, _milliseconds, _bytes, _ratio, …_per_second, before _total and
//     _bucket) or that a word for a duration in it tells (duration, latency, time_to_…, time_per_…, time_in_…:
//     seconds), or for traces and logs the name of the last attribute in metricSource.spec.value; seconds where
//     the annotation class is latency; else ratio, which a threshold outside [0, 1] contradicts.
//   - Unit of a thresholdMetric with rate: that of what is summed, by the same rules or by a name that ends in tokens or
//     requests, else events; and _per_second.
//   - Class: the annotation class; availability for a ratioMetric; latency where the unit is seconds,
//     throughput where it ends in _per_second, saturation where it is ratio or bytes. Any other unit needs the
//     annotation.
//   - Scale of a source: what turns metricSource.spec.unit, or the unit in the metric's name, into the base
//     unit. The objective's value is written in the source's unit and multiplied by the same number.
//   - Target of a composite: the mean of its parts' targets, each by its share of the weights; likewise its
//     timeSliceTarget. Its unit is ratio, and its class availability where the annotation does not say another.
//   - Group-by of a ViolationPolicy: that of its SLOs, which must be one and the same.
//   - Weight of a part of a composite: 1.
//
// A service needs no Service document, as OpenSLO allows.
package openslo
