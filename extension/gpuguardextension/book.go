// SPDX-License-Identifier: Apache-2.0

package gpuguardextension

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/audit"
	"github.com/otelcol-llm/otelcol-llm/internal/gpuaction"
)

const (
	// maxLast is how many of the last actions the admin endpoint shows.
	maxLast = 50
	// maxUntold is how many actions wait for the first subscriber, which is there a moment after the start, or never.
	maxUntold = 1000
	// maxUnwritten is how many lines wait for a disk that is full.
	maxUnwritten = 1000
)

// book is the record of what was done: in the audit file, for those who have subscribed, and for people.
type book struct {
	mu        sync.Mutex
	file      *audit.File // nil without one
	unwritten [][]byte
	failing   error
	last      []gpuaction.Action
	takers    map[int]func(gpuaction.Action)
	next      int
	everTaken bool
}

// open begins to write to a file.
func (b *book) open(cfg *AuditConfig) error {
	if cfg.File == "" {
		return nil
	}
	file, err := audit.Open(cfg.File, cfg.MaxBytes, cfg.Backups)
	if err != nil {
		return err
	}
	b.file = file
	return nil
}

// add records an action. It returns how many lines could not be written, and why the last one could not.
func (b *book) add(a gpuaction.Action) (lost int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = append(b.last, a)
	keep := maxLast
	if !b.everTaken {
		keep = maxUntold
	}
	b.last = slices.Delete(b.last, 0, max(len(b.last)-keep, 0))
	for _, take := range b.takers {
		take(a)
	}
	if b.file == nil {
		return 0, nil
	}
	line, err := json.Marshal(a)
	if err != nil {
		return 1, err
	}
	b.unwritten = append(b.unwritten, line)
	for len(b.unwritten) > 0 {
		if b.failing = b.file.Append(b.unwritten[0]); b.failing != nil {
			lost = max(len(b.unwritten)-maxUnwritten, 0)
			b.unwritten = slices.Delete(b.unwritten, 0, lost)
			return lost, b.failing
		}
		b.unwritten = b.unwritten[1:]
	}
	return 0, nil
}

// Subscribe calls take for each action, and for those that nobody has taken yet.
func (b *book) Subscribe(take func(gpuaction.Action)) (cancel func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.takers == nil {
		b.takers = map[int]func(gpuaction.Action){}
	}
	if !b.everTaken {
		for i := range b.last {
			take(b.last[i])
		}
	}
	b.everTaken = true
	id := b.next
	b.next++
	b.takers[id] = take
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.takers, id)
	}
}

// lately are the last actions, the newest first, and why the audit cannot be written, if it cannot.
func (b *book) lately() (last []gpuaction.Action, failing string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	last = slices.Clone(b.last[max(len(b.last)-maxLast, 0):])
	slices.Reverse(last)
	if last == nil {
		last = []gpuaction.Action{}
	}
	if b.failing != nil {
		failing = b.failing.Error()
	}
	return last, failing
}

func (b *book) close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.file == nil {
		return nil
	}
	return b.file.Close()
}
