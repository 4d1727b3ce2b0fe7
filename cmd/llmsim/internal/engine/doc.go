// SPDX-License-Identifier: Apache-2.0

// Package engine simulates one continuous-batching inference engine in simulated
// time: a first-come-first-served queue, a step loop with chunked prefill, a
// paged KV cache with prefix reuse, and preemption by recomputation.
//
// It follows the scheduling rules of vLLM's V1 engine as far as they show in its
// metrics. It has no clock, no randomness but its seed, and knows neither HTTP
// nor OTLP: arrivals go in by Submit, time goes in by AdvanceTo, and counters
// come out by Stats. Two engines fed the same arrivals end in the same state, in
// however many calls of AdvanceTo the time went by.
package engine
