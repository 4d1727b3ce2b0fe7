// SPDX-License-Identifier: Apache-2.0

// Package twosample says whether one set of values is worse than another: a canary than the version that it is to replace,
// or now than before.
//
// Two kinds of harm need two kinds of test. A shift of the whole distribution is found by the Mann–Whitney test, which is
// blind to a tail; a tail by Fisher's exact test on how many values are beyond a threshold, which is blind to a shift. The
// verdict is Degraded only with both significance, corrected for the number of comparisons, and an effect that matters. No
// data is not good data: a comparison without enough values has no verdict.
//
// NotWorse is no proof of being alike, only that nothing was found. A shift of 10 % is found by 500 values a side nine times in ten; a
// tail of 1 % only once, and takes 2,000 a side, or 20,000 of the reference (testdata/power.txt). Whoever has once found harm should
// wait until its Effect is gone.
//
// Everything works on bins, so on mergeable histograms as well as on raw values.
package twosample
