// SPDX-License-Identifier: Apache-2.0

package budget

import "fmt"

// RingState is a ring at rest, for checkpoints.
type RingState struct {
	_ struct{} `cbor:",toarray"`
	// Newest is where the newest slot begins, in minutes since the epoch.
	Newest uint32
	// Slots are all slots from the newest on, as encoding.go has them. A ring without slots is empty.
	Slots []byte
}

// State is the ring at rest. It shares nothing with the ring.
func (r *Ring) State() RingState {
	if r.head.empty() {
		return RingState{}
	}
	b := appendSlot(make([]byte, 0, maxSlot+len(r.tail)), r.head.start, r.head)
	return RingState{Newest: r.head.start, Slots: append(b, r.tail...)}
}

// Restore makes the ring what s says, with its slots where l has them: l may be another layout than the state was made
// with, but nothing becomes finer than it was. After an error the ring is as it was.
func (r *Ring) Restore(l *Layout, s RingState) error {
	if err := check(s.Newest, s.Slots); err != nil {
		return fmt.Errorf("state of a ring: %w", err)
	}
	*r = Ring{}
	i := reader{slot: slot{start: s.Newest}, rest: s.Slots}
	i.next()
	r.weave(l, i, reader{})
	return nil
}
