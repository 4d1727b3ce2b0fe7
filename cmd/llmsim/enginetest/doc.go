// SPDX-License-Identifier: Apache-2.0

// Package enginetest holds llmsim against a real engine. Its test needs the build
// tag enginetest and a running engine, which run.sh provides.
package enginetest
