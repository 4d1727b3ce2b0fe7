// SPDX-License-Identifier: Apache-2.0

// Package gpuaction is what gpu_guard has done, and how it is told: an extension has no pipeline, so the receiver of the same
// name takes its actions from it, and the audit has them in the same words.
package gpuaction
