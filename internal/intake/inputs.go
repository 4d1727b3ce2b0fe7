// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/delta"
	"github.com/otelcol-llm/otelcol-llm/internal/selection"
	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
)

// Input is what is remembered of one input series: where its points go, and the last cumulative one.
type Input struct {
	bindings    []binding // by the index of their use, rising
	number      delta.Number
	explicit    delta.Explicit
	exponential *delta.Exponential // nil for the many that are none
	unknown     uint64             // of the last exponential histogram: values that are in no bucket
	once        delta.Once
	layout      *layout // of the last point
	counts      bool    // one of the bindings takes what was added to a counter, whatever the metric's type says
	generation  uint64
	heard       int64 // wall clock
}

// scratch is reused from point to point.
type scratch struct {
	uses        []int // that the point serves, rising; shared or in memory
	memory      []int
	counts      []uint64
	added       []uint64
	exponential sketch.Exponential
	difference  sketch.Exponential
	found       []selection.Found
	values      []string
}

// binding is one use of an input series: the series that its points count for.
type binding struct {
	use    *selection.Use
	scale  float64
	slo    int
	values []string // of the SLO's group-by keys
	series Series
}

// serves reports whether all uses have a binding.
func (in *Input) serves(uses []int) bool {
	for i := range in.bindings {
		if len(uses) > 0 && uses[0] == in.bindings[i].use.Index {
			uses = uses[1:]
		}
	}
	return len(uses) == 0
}

// inputs holds the input series by their identity. Idle ones expire.
type inputs struct {
	max int
	ttl int64
	// generation counts the catalogs: an input series of an earlier one has to find its SLOs anew.
	generation uint64
	series     map[uint64]*Input
	checked    int64
	evicted    uint64
	touched    [Shards]bool // since the last checkpoint
	layouts    layouts
}

func newInputs(limit int, ttl time.Duration) *inputs {
	return &inputs{max: limit, ttl: int64(ttl), series: map[uint64]*Input{}, layouts: layouts{}}
}

// get returns an input series at a wall time, a new one where it is not known; nil where there is no room for it.
func (s *inputs) get(id uint64, now int64) *Input {
	in := s.series[id]
	if in == nil {
		if len(s.series) >= s.max {
			return nil
		}
		in = &Input{generation: s.generation}
		s.series[id] = in
	}
	in.heard = now
	s.touched[id%Shards] = true
	return in
}

// expire forgets series that were silent for longer than the TTL. It walks the map rarely: the walk costs more than
// the memory that it frees a little earlier.
func (s *inputs) expire(now int64) {
	if now-s.checked < s.ttl/4 {
		return
	}
	s.checked = now
	for id, in := range s.series {
		if now-in.heard > s.ttl {
			delete(s.series, id)
			s.touched[id%Shards] = true
			s.evicted++
		}
	}
}
