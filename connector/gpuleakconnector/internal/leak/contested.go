// SPDX-License-Identifier: Apache-2.0

package leak

// A process id is that of one process on a host at a time. Where two programs, or two containers, tell memory under the same one in turn, two hosts
// have no names, and what the later one says does not count: it would end the former each time. Once that has been silent for as long as one is
// remembered, it has ended, and the id is the later one's.

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
