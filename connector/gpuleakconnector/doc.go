// SPDX-License-Identifier: Apache-2.0

// Package gpuleakconnector says which processes leak GPU memory, how fast, when nothing will be left, and why: it hears the memory of
// processes and devices and the traffic of engines, and derives states and rates as metrics, and leaks that open and close as
// log events.
//
//	connectors:
//	  gpu_leak:
//	service:
//	  pipelines:
//	    metrics: {receivers: [nvidia_gpu, cuda_memory, prometheus], exporters: [gpu_leak]}
//	    traces: {receivers: [otlp], exporters: [gpu_leak]} # where an application tells of its engines and contexts
//	    metrics/leak: {receivers: [gpu_leak], exporters: [prometheus]}
//	    logs/leak: {receivers: [gpu_leak], exporters: [otlp_http]}
package gpuleakconnector
