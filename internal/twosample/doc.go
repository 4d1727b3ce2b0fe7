// SPDX-License-Identifier: Apache-2.0

// Package twosample says whether one set of values is worse than another: a canary than the version that it replaces,
// or now than before.
package twosample
