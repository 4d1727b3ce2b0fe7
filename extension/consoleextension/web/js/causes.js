// SPDX-License-Identifier: Apache-2.0
// What the causes of leaks mean and how they are seen: the rules that come with the gpu_leak connector, in its words. {pid} and
// {device} stand for the process and the device.

export const causes = {
  orphaned_process: {
    text: "Memory of device {device} is held by no process that is visible: one that died without giving it back, or one in another container or virtual machine.",
    verify: "fuser -v /dev/nvidia*; nvidia-smi --id={device} --query-compute-apps=pid,used_memory --format=csv",
  },
  fragmentation: {
    text: "What process {pid} has allocated and not freed does not grow, and what the driver holds for it does: its allocator has cut its memory into pieces that are too small, and asks for more.",
    verify: "py-spy dump --pid {pid}; in the process, torch.cuda.memory_summary() shows reserved far above allocated; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True helps",
  },
  engine_not_released: {
    text: "Process {pid} makes engines and does not release them: each keeps its weights and its workspace.",
    verify: "py-spy dump --pid {pid}; count create and destroy of engines in its log",
  },
  context_not_released: {
    text: "Process {pid} makes execution contexts and does not release them: each keeps its activations.",
    verify: "py-spy dump --pid {pid}; count create and destroy of contexts in its log",
  },
  block_not_released: {
    text: "Process {pid} takes blocks of its cache and does not give them back.",
    verify: "curl -s http://localhost:8000/metrics | grep kv_cache_usage, while no request runs: it should be near 0",
  },
  allocation_not_freed: {
    text: "Process {pid} allocates more than it frees.",
    verify: "bpftrace -p {pid} -e 'uprobe:libcuda:cuMemAlloc_v2 { @[ustack] = count(); }' shows who allocates",
  },
  not_returned: {
    text: "What the driver holds for process {pid} grows, and device {device} does not get it back: an execution context, an engine or a module is made again and again and not released.",
    verify: "nvidia-smi --id={device} --query-compute-apps=pid,used_memory --format=csv -l 60, while traffic is held back",
  },
  unknown: {
    text: "What the driver holds for process {pid} grows, and more is not known: run the cuda_memory receiver beside it.",
    verify: "nvidia-smi --id={device} --query-compute-apps=pid,used_memory --format=csv -l 60",
  },
  device_grows: {
    text: "What is in use on device {device} grows, and nothing is told of the processes on it: run the nvidia_gpu receiver where it sees them, by NVML and in the host's PID namespace, or the cuda_memory receiver.",
    verify: "nvidia-smi --id={device} --query-gpu=memory.used --format=csv -l 60; fuser -v /dev/nvidia*",
  },
};

/** A cause in words: {name, text, verify}. Of one by a rule of one's own only the name is known here. An option that names a device that is not known is left out. */
export function explain(cause, pid, device) {
  const known = Object.hasOwn(causes, cause) ? causes[cause] : undefined, of = device ? "" : " --id={device}";
  const fill = (text) => text?.replaceAll(of, "").replaceAll("{pid}", pid).replaceAll("{device}", device);
  return { name: cause.replaceAll("_", " "), text: fill(known?.text), verify: fill(known?.verify) };
}
