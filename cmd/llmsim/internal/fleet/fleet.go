// SPDX-License-Identifier: Apache-2.0

// Package fleet sends arrivals to replicas and carries them all through
// simulated time together.
package fleet

import (
	"time"

	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/engine"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/scenario"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/trace"
)

// Replica is one running engine.
type Replica struct {
	scenario.Replica
	Engine *engine.Engine
}

// Fleet is all replicas and the traffic that is still to come. It is not safe
// for concurrent use.
type Fleet struct {
	Replicas []*Replica

	router router
	source trace.Source
	next   trace.Row
	more   bool
	count  uint64
	now    time.Duration
}

// New builds a fleet. Every replica gets the same seed: a request's fate does not
// depend on where it is sent. OnFinish may be nil.
func New(s scenario.Scenario, source trace.Source, seed uint64, onFinish func(*Replica, engine.Record)) *Fleet {
	f := &Fleet{source: source}
	for _, spec := range s.Replicas {
		rep := &Replica{Replica: spec}
		cfg := spec.Engine
		cfg.Seed = seed
		cfg.Conditions = s.Faults.For(spec.Labels)
		if onFinish != nil {
			cfg.OnFinish = func(r engine.Record) { onFinish(rep, r) }
		}
		rep.Engine = engine.New(cfg)
		f.Replicas = append(f.Replicas, rep)
	}
	f.router = newRouter(s.Routing, f.Replicas, seed)
	f.next, f.more = source.Next()
	return f
}

// AdvanceTo lets everything happen that happens before t, arrivals included.
func (f *Fleet) AdvanceTo(t time.Duration) {
	for f.more && f.next.At < t {
		f.advanceEngines(f.next.At)
		f.arrive(f.next)
		f.next, f.more = f.source.Next()
	}
	f.advanceEngines(t)
	f.now = max(f.now, t)
}

// Done says whether the traffic has ended and every request with it.
func (f *Fleet) Done() bool {
	if f.more {
		return false
	}
	for _, r := range f.Replicas {
		if r.Engine.InFlight() > 0 {
			return false
		}
	}
	return true
}

// Now is the simulated time that was reached.
func (f *Fleet) Now() time.Duration { return f.now }

// Arrived is the number of requests so far.
func (f *Fleet) Arrived() uint64 { return f.count }

func (f *Fleet) advanceEngines(t time.Duration) {
	for _, r := range f.Replicas {
		r.Engine.AdvanceTo(t)
	}
}

func (f *Fleet) arrive(row trace.Row) {
	id := f.count
	f.count++
	f.router.pick(id).Engine.Submit(engine.Request{
		ID: id, Arrival: row.At, PromptTokens: row.PromptTokens, OutputTokens: row.OutputTokens,
		Prefix: engine.Prefix{IDs: row.Prefix, Tokens: row.PrefixTokens},
	})
}
