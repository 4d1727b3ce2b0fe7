// SPDX-License-Identifier: Apache-2.0

// Package leak knows the processes on GPUs, what memory each holds and what traffic it has, and says which of them leak: one
// verdict a process and device, one event a process. It takes plain values, in event time, and judges when a watermark passes: what it says
// of a time follows from what was heard of it, however that was cut into batches.
package leak
