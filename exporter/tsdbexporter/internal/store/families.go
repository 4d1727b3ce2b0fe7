// SPDX-License-Identifier: Apache-2.0

package store

import (
	"maps"
	"strings"
	"sync"

	"github.com/prometheus/prometheus/model/metadata"
)

// Families remembers type, unit and help of the metrics that were appended: the TSDB keeps none.
type Families struct {
	most int

	mu  sync.RWMutex
	all map[string]metadata.Metadata // guarded by mu
}

func newFamilies(most int) *Families {
	return &Families{most: most, all: map[string]metadata.Metadata{}}
}

// put remembers what was last said of a metric. There can be no more metrics than series, so what is full here is full there.
func (f *Families) put(name string, m metadata.Metadata) {
	f.mu.RLock()
	known, ok := f.all[name]
	full := len(f.all) >= f.most
	f.mu.RUnlock()
	if ok && known == m || !ok && full {
		return
	}
	m.Help, m.Unit = strings.ToValidUTF8(m.Help, "\uFFFD"), strings.ToValidUTF8(m.Unit, "\uFFFD")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all[name] = m
}

// All returns a copy.
func (f *Families) All() map[string]metadata.Metadata {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return maps.Clone(f.all)
}

// Get returns what is known of a metric.
func (f *Families) Get(name string) (metadata.Metadata, bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	m, ok := f.all[name]
	return m, ok
}
