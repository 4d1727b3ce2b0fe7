// SPDX-License-Identifier: Apache-2.0

// Package gpu is what is known of NVIDIA GPUs as plain values: the one table of what can be measured, by which source, in
// which unit and on which devices; the Snapshot that a Source fills; and the Source.
//
// A Source never invents a value: what a device does not support, what a driver is too old for, and what comes as a blank is
// not set, and so is no data point. What is set passes the limits of the table, and what does not pass is counted by Reason.
package gpu
