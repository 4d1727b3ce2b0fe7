// SPDX-License-Identifier: Apache-2.0
// What NVIDIA's Xids mean, of those that are met in the field: https://docs.nvidia.com/deploy/xid-errors

export const xids = {
  13: "graphics engine exception: mostly the application",
  31: "memory page fault: mostly the application",
  43: "the GPU stopped processing: the application's fault",
  45: "work was removed: follows another fault, or a kill",
  48: "double bit ECC error: reset the GPU",
  61: "breakpoint in the microcontroller",
  62: "the microcontroller halted: reset the GPU",
  63: "a row is remapped or a page retired",
  64: "remapping or retiring failed: replace if it recurs",
  68: "exception in the video processor",
  74: "NVLink error: check the link",
  79: "the GPU has fallen off the bus: reset the machine",
  92: "many single bit ECC errors",
  94: "contained ECC error: restart the application",
  95: "uncontained ECC error: reset the GPU",
  119: "the GPU's system processor does not answer: reset the GPU",
  120: "error in the GPU's system processor: reset the GPU",
};
