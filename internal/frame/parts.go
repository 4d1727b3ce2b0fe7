// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/otelcol-llm/otelcol-llm/internal/checkpoint"
	"github.com/otelcol-llm/otelcol-llm/internal/intake"
)

// The names of the parts of an intake.
const (
	SpansPart  = "spans"
	InputsPart = "inputs/" // and the shard
)

// Parts are those of a checkpoint. The zero value has none.
type Parts struct {
	all map[string][]byte
	err error
}

// Put encodes a part.
func (p *Parts) Put(name string, v any) {
	if p.err != nil {
		return
	}
	if p.all == nil {
		p.all = map[string][]byte{}
	}
	p.all[name], p.err = checkpoint.Encode(v)
}

// Encode makes the parts of a snapshot.
func Encode(s Snapshot) (map[string][]byte, error) {
	var p Parts
	s.Encode(&p)
	return p.all, p.err
}

// PutShards encodes the shards of a state; prefix ends with a slash.
func PutShards[S any](p *Parts, prefix string, shards map[int][]S) {
	for shard, states := range shards {
		p.Put(prefix+strconv.Itoa(shard), states)
	}
}

// Get decodes a part.
func Get(parts map[string][]byte, name string, into any) error {
	if err := checkpoint.Decode(parts[name], into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Shards decodes all shards of a state.
func Shards[S any](parts map[string][]byte, prefix string) (all []S, err error) {
	for name := range parts {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		var some []S
		if err := Get(parts, name, &some); err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// Heard is what has changed of an intake: how far its inputs have come, and the spans that it remembers.
type Heard struct {
	spans  []byte // nil where none came
	inputs map[int][]intake.InputState
}

// TakeHeard takes it.
func TakeHeard(in *intake.Intake) Heard { return Heard{in.TakeSpans(), in.TakeInputs()} }

// Encode makes parts of it.
func (h Heard) Encode(to *Parts) {
	if h.spans != nil {
		to.Put(SpansPart, h.spans)
	}
	PutShards(to, InputsPart, h.inputs)
}

// RestoreHeard takes it up at a wall time.
func RestoreHeard(in *intake.Intake, parts map[string][]byte, now int64) error {
	inputs, err := Shards[intake.InputState](parts, InputsPart)
	if err != nil {
		return err
	}
	if err := in.RestoreInputs(inputs, now); err != nil {
		return fmt.Errorf("%s: %w", strings.TrimSuffix(InputsPart, "/"), err)
	}
	if _, ok := parts[SpansPart]; !ok {
		return nil
	}
	var seen []byte
	if err := Get(parts, SpansPart, &seen); err != nil {
		return err
	}
	in.RestoreSpans(seen)
	return nil
}
