// SPDX-License-Identifier: Apache-2.0

// Package sketch holds distributions that merge without losing what their source could prove.
//
// A bucketed source keeps its own boundaries: moving counts into other buckets would lose the objective's
// boundary, and with it the proof that a promise was kept or broken. Raw values go into an exponential
// histogram (https://opentelemetry.io/docs/specs/otel/metrics/data-model/#exponentialhistogram).
//
//	merge(part A, part B) = whole, to the event
//
// holds for every count. The package takes plain values; it knows no pdata and no clock.
package sketch
