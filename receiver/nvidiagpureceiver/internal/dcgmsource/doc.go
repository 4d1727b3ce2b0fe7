// SPDX-License-Identifier: Apache-2.0

// Package dcgmsource is the gpu.Source that asks DCGM: a running host engine, or one inside of this process. It knows no
// processes.
package dcgmsource
