// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the shipped binary as its users run it: telemetry goes in over the network, results are read where
// the binary wrote them.
package e2e
