// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"strings"
	"sync/atomic"

	"github.com/otelcol-llm/otelcol-llm/internal/readmostly"
	"github.com/otelcol-llm/otelcol-llm/internal/tenant"
)

// placeholder stands in a template for the name that was found.
const placeholder = "{tenant}"

// mapping makes tenant ids of names. It is safe for concurrent use.
type mapping struct {
	table          atomic.Pointer[map[string]string] // replaced as a whole
	template       bool
	prefix, suffix string
	// made are ids that the template has made, so that one is not made for every resource.
	made *readmostly.Map[string, string]
}

// newMapping makes ids by a template, which may be empty. At most so many of them are remembered.
func newMapping(template string, remembered int) *mapping {
	m := &mapping{template: template != "", made: readmostly.New[string, string](remembered)}
	m.prefix, m.suffix, _ = strings.Cut(template, placeholder)
	m.table.Store(&map[string]string{})
	return m
}

// id is the tenant that a name stands for, "" for none, and for what a template makes no id of. It has the memory of the name where it is the name.
func (m *mapping) id(name string) string {
	if id, ok := (*m.table.Load())[name]; ok {
		return id
	}
	switch {
	case !m.template || name == "":
		return ""
	case m.prefix == "" && m.suffix == "":
		return name
	}
	if id, ok := m.made.Get(name); ok {
		return id
	}
	if len(name) > tenant.MaxLength { // nor is it to be copied
		return ""
	}
	id := m.prefix + name + m.suffix
	if !tenant.Valid(id) { // nobody's memory is for names that clients make up
		return ""
	}
	m.made.GetOrPut(strings.Clone(name), func() string { return id })
	return id
}
