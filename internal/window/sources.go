// SPDX-License-Identifier: Apache-2.0

package window

import "container/heap"

// source is one clock of the input.
type source struct {
	newest int64 // event time
	heard  int64 // wall time at which newest last grew
	at     int   // in the queue; outside when others do not wait for it
}

// outside marks a source that is not in the queue.
const outside = -1

// queue holds the sources that others wait for, the slowest first.
type queue []*source

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].newest < q[j].newest }

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].at, q[j].at = i, j
}

// Push is for container/heap.
func (q *queue) Push(x any) {
	s := x.(*source)
	s.at = len(*q)
	*q = append(*q, s)
}

// Pop is for container/heap.
func (q *queue) Pop() any {
	last := len(*q) - 1
	s := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	s.at = outside
	return s
}

// moved puts a source in its place after its newest grew, and takes one in that stood outside.
func (q *queue) moved(s *source) {
	if s.at == outside {
		heap.Push(q, s)
		return
	}
	heap.Fix(q, s.at)
}

// drop takes a source out.
func (q *queue) drop(s *source) {
	if s.at != outside {
		heap.Remove(q, s.at)
	}
}
