// SPDX-License-Identifier: Apache-2.0

// Package workload says whose a process on a GPU is: its executable, the container and the pod that it runs in.
//
// A driver knows processes by the PIDs of the host, /proc knows their executables, /proc/PID/cgroup their containers and
// the uids of their pods, and the kubelet the names of pods, of the devices that it has given them, and, in
// /var/log/containers, of containers. Each of them may be silent: a process that has ended or is hidden, a Collector in a
// PID namespace of its own, a machine without a kubelet. What is not known stays empty, and that is no error.
//
// What is known is known for certain. The name of a pod is told of a process
//   - when the kubelet has a log for its container, or
//   - when the kubelet has given the device to one pod only, has been asked after the process had started, and all
//     processes there that run in a pod run in the same one.
//
// Several pods that share a device are never told apart by it: the container's id and the pod's uid are what is left, by
// which k8s_attributes finds their names.
package workload
