// SPDX-License-Identifier: Apache-2.0

package leaks

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

const (
	gib = 1 << 30
	mib = 1 << 20
)

// kind is a kind of process: what it does, and whether that is a leak.
type kind struct {
	name  string
	leaks bool
	hours float64
	daily bool // its traffic comes and goes by day
	// used is what may be gone of the headroom when 95 of 100 are found. A fifth is what is wanted. It is less than a verdict after three hours
	// can keep where the GPU is full within 17, where a cache has taken a tenth of the headroom before, and where four steps are as much.
	used float64
	// follows and keeps are what a running request takes while it runs, and what is kept for the most that ever ran.
	follows, keeps float64
	sleeps         bool // for 20 minutes every 3 hours
	// faults are those of one process, as a scenario has them; each has parameters of its own.
	faults func(r *rand.Rand) string
}

// perHour is how fast a leak grows: 200 MiB to 1 GiB an hour, 0.5 % to 2.5 % of what an engine holds.
func perHour(r *rand.Rand) float64 { return 200 * mib * math.Pow(5.12, r.Float64()) }

// perRequest is the same by requests.
func perRequest(r *rand.Rand) float64 { return perHour(r) / (3600 * arrivals) }

func leak(format string, args ...any) string { return fmt.Sprintf("{kind: leak, "+format+"}", args...) }

func none(*rand.Rand) string { return "" }

// repeated begins every so many minutes anew.
func repeated(hours, minutes, bytes float64) string {
	var all []string
	for at := 0.0; at < hours*60; at += minutes {
		all = append(all, leak("from: %.0fs, until: %.0fs, rate: %.0f", at*60, (at+minutes)*60, bytes/(minutes*60)))
	}
	return strings.Join(all, ", ")
}

var kinds = []kind{
	{name: "leak, as time goes by", leaks: true, hours: 12, used: 0.2, faults: func(r *rand.Rand) string { return leak("rate: %.0f", perHour(r)/3600) }},
	{name: "leak, with each request", leaks: true, hours: 12, used: 0.2, faults: func(r *rand.Rand) string { return leak("per_request: %.0f", perRequest(r)) }},
	{name: "leak, in blocks of 64 MiB", leaks: true, hours: 12, used: 0.2, faults: func(r *rand.Rand) string {
		return leak("rate: %.0f, block: %d", perHour(r)/3600, 64*mib)
	}},
	{name: "leak that fills the GPU within 2 to 6 hours", leaks: true, hours: 6, used: 0.35, faults: func(r *rand.Rand) string {
		return leak("rate: %.0f", headroom/(3600*(2+4*r.Float64())))
	}},
	{name: "leak behind a cache that fills within an hour", leaks: true, hours: 12, used: 0.25, faults: func(r *rand.Rand) string {
		return leak("rate: %.0f", perHour(r)/3600) + ", " + leak("rate: %d, limit: %d", 4*gib/(600+r.IntN(3000)), 4*gib)
	}},
	{name: "leak with each request, by day; a request takes 100 MiB", leaks: true, hours: 18, daily: true, used: 0.2, follows: 100 * mib, faults: func(r *rand.Rand) string {
		return leak("per_request: %.0f", perRequest(r))
	}},
	{name: "leak, 1 GiB every 2 hours", leaks: true, hours: 14, used: 0.2, faults: func(*rand.Rand) string { return leak("rate: %.3f, block: %d", gib/7200.0, gib) }},
	{name: "leak, 2 GiB every 4 hours", leaks: true, hours: 24, used: 0.25, faults: func(*rand.Rand) string { return leak("rate: %.3f, block: %d", gib/7200.0, 2*gib) }},
	{name: "flat", hours: 12, faults: none},
	{name: "cache of 4 GiB that fills within an hour", hours: 12, faults: func(r *rand.Rand) string {
		return leak("rate: %d, limit: %d", 4*gib/(600+r.IntN(3000)), 4*gib)
	}},
	{name: "caching allocator: four steps of 1 GiB within 4 hours", hours: 12, faults: func(r *rand.Rand) string {
		return leak("rate: %d, block: %d, limit: %d", 4*gib/(3600+r.IntN(3*3600)), gib, 4*gib)
	}},
	{name: "garbage that is collected every half hour to 2 hours", hours: 12, faults: func(r *rand.Rand) string {
		return repeated(12, 30+float64(r.IntN(90)), 4*gib)
	}},
	{name: "daily traffic; a request takes 100 MiB", hours: 24, daily: true, follows: 100 * mib, faults: none},
	{name: "daily traffic; memory is kept for the most there was", hours: 24, daily: true, keeps: 100 * mib, faults: none},
	{name: "leak, asleep for 20 minutes every 3 hours", leaks: true, hours: 12, sleeps: true, used: 0.2, faults: func(r *rand.Rand) string { return leak("rate: %.0f", perHour(r)/3600) }},
	{name: "leak that begins after 6 hours of calm", leaks: true, hours: 18, used: 0.2, faults: func(r *rand.Rand) string {
		return leak("from: 6h, rate: %.0f", perHour(r)/3600)
	}},
	{name: "flat, asleep for 20 minutes every 3 hours", hours: 12, sleeps: true, faults: none},
}
