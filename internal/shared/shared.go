// SPDX-License-Identifier: Apache-2.0

// Package shared lets the instances of one component share one engine.
//
// The Collector builds an instance of a component for every pair of signals it connects and hands each batch to all
// of them. A stateful component must keep one state and hear each batch once, however it is wired.
package shared

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pipeline"
)

// Group holds the engines of one kind of component by their configuration: the Collector hands the same pointer
// to every instance of a component id. The zero value is ready.
type Group[E component.Component] struct {
	mu      sync.Mutex
	engines map[component.Config]*engine[E]
}

type engine[E component.Component] struct {
	value    E
	claimed  map[pipeline.Signal]bool
	start    sync.Once
	startErr error
	stop     sync.Once
	stopErr  error
}

// Join returns a new member of the engine that belongs to cfg, creating the engine for the first one.
func (g *Group[E]) Join(cfg component.Config, create func() (E, error)) (*Member[E], error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if en := g.engines[cfg]; en != nil {
		return &Member[E]{group: g, cfg: cfg, engine: en}, nil
	}
	value, err := create()
	if err != nil {
		return nil, err
	}
	en := &engine[E]{value: value, claimed: map[pipeline.Signal]bool{}}
	if g.engines == nil {
		g.engines = map[component.Config]*engine[E]{}
	}
	g.engines[cfg] = en
	return &Member[E]{group: g, cfg: cfg, engine: en}, nil
}

// Member is one instance's share in an engine.
type Member[E component.Component] struct {
	group  *Group[E]
	cfg    component.Config
	engine *engine[E]
}

// Engine is what all members share.
func (m *Member[E]) Engine() E { return m.engine.value }

// Claim reports whether the caller is the one instance that feeds the engine with a signal: the first that asks.
func (m *Member[E]) Claim(signal pipeline.Signal) bool {
	m.group.mu.Lock()
	defer m.group.mu.Unlock()
	if m.engine.claimed[signal] {
		return false
	}
	m.engine.claimed[signal] = true
	return true
}

// Start starts the engine with the first member.
func (m *Member[E]) Start(ctx context.Context, host component.Host) error {
	m.engine.start.Do(func() { m.engine.startErr = m.engine.value.Start(ctx, host) })
	return m.engine.startErr
}

// Shutdown stops the engine with the first member: by then nothing is sent to any of them any more, while the
// consumers behind all of them still live and can take a last flush.
func (m *Member[E]) Shutdown(ctx context.Context) error {
	m.engine.stop.Do(func() {
		m.group.mu.Lock()
		delete(m.group.engines, m.cfg)
		m.group.mu.Unlock()
		m.engine.stopErr = m.engine.value.Shutdown(ctx)
	})
	return m.engine.stopErr
}
