// SPDX-License-Identifier: Apache-2.0

// Package upstream proves that existing Collector configurations run unchanged: testdata/ holds configurations made of
// the examples in the READMEs of upstream components, and the shipped binary has to start with each of them.
package upstream
