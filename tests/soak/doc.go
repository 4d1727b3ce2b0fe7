// SPDX-License-Identifier: Apache-2.0

// Package soak runs the demo for a while and holds the Collector to what it was after it had warmed up: `make nightly` runs the
// test, which carries the build tag soak, and it writes docs/soak.md. It reads /proc, so it is for Linux.
package soak
