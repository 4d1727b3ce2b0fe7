// SPDX-License-Identifier: Apache-2.0

// Package leaks holds what the gpu_leak connector says of hundreds of processes against what they do.
//
// The simulator serves requests for half a day and longer, under faults that leak and faults that only look like it. The memory of its
// engines is shown by the fake NVML, read by the nvidia_gpu receiver, which finds their pods, and their /metrics by a scrape that knows the pod
// only; the connector, made by its factory and with its defaults, judges both. testdata/leaks.txt has the recall, the false alarms, and how long it took.
package leaks
