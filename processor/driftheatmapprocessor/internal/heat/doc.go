// SPDX-License-Identifier: Apache-2.0

// Package heat keeps a map of cells, each one promise in one combination of dimensions, and says window by window which of
// them drifts: against what was promised, what was normal, and, for a canary, the version that it is to replace. It also says
// which value of which dimension explains it.
//
// It takes plain values in event time and knows neither pdata nor a clock. A Map is not safe for concurrent use.
package heat
