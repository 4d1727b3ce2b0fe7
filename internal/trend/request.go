// SPDX-License-Identifier: Apache-2.0

package trend

import "math"

// perRequest is how much memory there was by requests that ran.
type perRequest struct {
	_       struct{} `cbor:",toarray"`
	N, Runs uint64
	Bytes   float64 // sum of N
	Running float64 // sum of Runs
}

func (p *perRequest) add(c *cell) {
	p.merge(&perRequest{N: uint64(c.n), Runs: uint64(c.loads), Bytes: c.bytes, Running: c.load})
}

func (p *perRequest) merge(o *perRequest) {
	p.N, p.Runs, p.Bytes, p.Running = p.N+o.N, p.Runs+o.Runs, p.Bytes+o.Bytes, p.Running+o.Running
}

// value is the mean of memory by the mean of requests; NaN where none are known to have run.
func (p *perRequest) value() float64 {
	if p.N == 0 || p.Running <= 0 {
		return math.NaN()
	}
	return p.Bytes / float64(p.N) / (p.Running / float64(p.Runs))
}

// perRequest is that of the last hour.
func (j *Judge) perRequest(s *Series) float64 {
	var p perRequest
	for i := len(s.cells) - 1; i >= 0 && s.cells[i].at*j.width > s.last.At-firstHour; i-- {
		p.add(&s.cells[i])
	}
	return p.value()
}
