// SPDX-License-Identifier: Apache-2.0

// Package nvidiagpureceiver reads NVIDIA GPUs, their MIG instances and the processes on them, by NVML and DCGM: values as
// metrics; Xid errors, lost GPUs and changes of driver and MIG as log events too. Without a GPU or a driver it waits for one.
//
//	receivers:
//	  nvidia_gpu:
//	service:
//	  pipelines:
//	    metrics: {receivers: [nvidia_gpu], exporters: [prometheus]}
//	    logs: {receivers: [nvidia_gpu], exporters: [otlp_http]}
package nvidiagpureceiver
