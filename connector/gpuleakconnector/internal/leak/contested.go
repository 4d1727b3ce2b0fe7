// SPDX-License-Identifier: Apache-2.0

package leak

import (
	"math"
	"slices"
)

// A process id is that of one process on a host at a time. Where two programs, or two containers, tell memory under the same one in turn, two hosts
// have no names, and what the later one says does not count: it would end the former each time. Once that has been silent for as long as one is
// remembered, it has ended, and the id is the later one's.

// same is the share by which the memory of a process may differ from that of the one before, for both to be one under two names.
const same = 0.1

// renames notes that what a point says is said of a process under a new name, if it is: a process may call itself what it likes, as vLLM's and Ray's workers do time and
// again, and goes on with the memory that it had on the device where it had it. Another one, that got its id, hardly does.
func (f *Fleet) renames(p *Process, o *observation) bool {
	i := slices.IndexFunc(p.places, func(place *Place) bool { return place.Device == o.where.Device })
	if i < 0 || o.kind == Missed {
		return false
	}
	of := &p.places[i].used
	if o.kind == Live {
		of = &p.places[i].live
	}
	at, bytes := of.Last()
	if of.Since() == 0 || o.at-at > int64(f.options.TTL) || math.Abs(o.value-bytes) > same*max(o.value, bytes) {
		return false
	}
	for _, place := range p.places {
		if f.options.Gone != nil {
			f.options.Gone(place, o.at) // nothing more is said under its former name
		}
	}
	return true
}

// contests reports whether what a point says is said under the process id of another process that goes on.
func (f *Fleet) contests(p *Process, o *observation) bool {
	if o.at-p.saidAt > int64(f.options.TTL) {
		return false
	}
	f.unjoined[Contested]++
	if !p.contested {
		p.contested = true
		if f.options.Contested != nil {
			f.options.Contested(p, o.where)
		}
	}
	return true
}
