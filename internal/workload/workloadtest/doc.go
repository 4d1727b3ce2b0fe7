// SPDX-License-Identifier: Apache-2.0

// Package workloadtest makes what internal/workload looks at: processes in real control groups, and a kubelet on a real
// socket.
//
//	cmd := workloadtest.Start(t, "vllm")
//	workloadtest.Move(t, cmd, workloadtest.Pod(uid, id))
//	kubelet := workloadtest.NewKubelet(t, workloadtest.Holds("chat-0", workloadtest.Container("vllm", "GPU-…")))
//
// It needs root, as everything that puts processes into control groups, and control groups of version 2.
package workloadtest
