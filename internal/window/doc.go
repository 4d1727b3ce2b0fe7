// SPDX-License-Identifier: Apache-2.0

// Package window keeps event time: watermarks that say how far the input has come, and windows that close when
// the watermark passes their end.
//
// All times are Unix nanoseconds. Windows are [start, end) and aligned to the epoch; a point belongs to the one
// that holds its own time and is never split. The package has no clock: where the wall clock matters, it comes
// in as a parameter. The model is that of Akidau et al., The Dataflow Model, VLDB 2015
// (https://research.google/pubs/the-dataflow-model-a-practical-approach-to-balancing-correctness-latency-and-cost-in-massive-scale-unbounded-out-of-order-data-processing/).
package window
