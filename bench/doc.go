// SPDX-License-Identifier: Apache-2.0

// Package bench measures the shipped binary, each figure beside that of a peer in the same run.
package bench
