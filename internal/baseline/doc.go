// SPDX-License-Identifier: Apache-2.0

// Package baseline learns what is normal for a cell, which is one promise in one combination of dimensions, and says how
// far a window is from it.
//
// Three baselines stand beside each other, because each is blind where another sees:
//
//	static   the objective: what was promised
//	dynamic  what was normal lately: it forgets with a half-life of 34 windows, so a jump shows and a slow ramp does not
//	frozen   what was normal once: the first day of windows, or that from a time on that somebody said; a slow ramp shows
//
// An incident is part of neither: frozen takes in no window that seems to miss the promise or is degraded, dynamic none that is
// degraded and worse than what was normal before.
//
// A quantile is only told when there is ground for it: from the histogram with enough samples, from a fitted Gamma
// distribution with fewer if it demonstrably fits, and otherwise not at all (see Estimate). No data is not good data.
//
// The package takes plain values: windows are closed by the caller, and time, in Unix nanoseconds, is a parameter.
package baseline
