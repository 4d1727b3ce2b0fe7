// SPDX-License-Identifier: Apache-2.0

// Command gpucheck runs the nvidia_gpu receiver of the shipped binary on a machine with an NVIDIA GPU, beside nvidia-smi,
// compares what both say, and writes a page about it. `make gpu-check` runs it.
//
// Both look every second or so, at other moments. What moves is therefore compared with the span of what nvidia-smi said
// before and after, and with a tolerance that stands on the page beside each metric. What nvidia-smi has and the receiver has
// not is a failure, and so is what the receiver has and nvidia-smi says it cannot have. Metrics that nvidia-smi does not know
// are listed, and judged by nobody.
//
// The page has no UUIDs, serial numbers or names of processes, so that it can be published.
package main
