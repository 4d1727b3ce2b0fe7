// SPDX-License-Identifier: Apache-2.0

// Package nvmlsource reads GPUs by NVML, as a gpu.Source.
//
// A reading asks each device one thing after the other, only what is wanted, and into the same memory as the last time. What
// one device cannot tell is left out; a device that is lost says so and the others go on. While one is lost, the library is
// opened anew now and then, since a device that was reset comes back for a new session only. A driver that went away, or that
// was changed, ends the session: Read returns an error.
package nvmlsource
