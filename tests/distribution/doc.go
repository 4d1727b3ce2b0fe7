// SPDX-License-Identifier: Apache-2.0

// Package distribution tests what is shipped: that the binary is made of what builder-config.yaml says, that nothing in
// it is older than it has to be, and that the configurations in it start.
package distribution
