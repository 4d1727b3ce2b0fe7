// SPDX-License-Identifier: Apache-2.0

// Package trend tells memory that leaks from memory that is only used: by a cache that fills once, by traffic that comes and
// goes, by a collector of garbage, by a process that sleeps or has begun anew.
//
//	var s trend.Series                                  // of one process, some 30 KB when it is ten days old
//	judge.Add(&s, at, bytes)                            // event time, in any order
//	judge.Running(&s, at, requests)                     // what its traffic was meanwhile, where that is known
//	r := judge.Judge(&s, now, trend.Alone(limit-usage)) // state, rate, time to exhaustion, bytes a request
//
// A rise is looked for over several spans at once, each twice as long as the one before (see Series). In each of them
//
//   - what the traffic explains is taken out of it, and what cannot be told from traffic is not held against the process
//     (traffic.go),
//   - a robust slope with an interval is found, and tested with regard to ties and to values that hang together
//     (slope.go, serial.go),
//   - and it is a leak only if it goes on: a few steps, or a rise that flattens, is memory that is kept, not lost (shape.go), but more
//     even ones are a stair that has no end (stairs.go).
//
// The verdict changes only when that is found for a while (verdict.go).
//
// The package takes plain values, and time, in Unix nanoseconds, is a parameter.
package trend
