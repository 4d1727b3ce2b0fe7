// SPDX-License-Identifier: Apache-2.0

// Package dcgmnames writes what is known of GPUs as dcgm-exporter does, so that dashboards and alerts that were made for it
// go on: DCGM_FI_DEV_GPU_TEMP and its kin, in its units, with its labels.
//
// It is the same truth in other words. What was not read is not there, which is what dcgm-exporter does with a blank too; a
// MIG instance has what it has itself, and not what its GPU has; and pods that share a device are not named.
package dcgmnames
