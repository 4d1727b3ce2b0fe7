// SPDX-License-Identifier: Apache-2.0

// Package backends tests the shipped binary together with the real tools that users run beside it: `make test-backends`
// builds those at their pinned versions and runs the tests, which carry the build tag backends. A tool that is missing
// fails a test, it does not skip it.
package backends
