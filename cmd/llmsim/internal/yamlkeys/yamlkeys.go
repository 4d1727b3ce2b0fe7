// SPDX-License-Identifier: Apache-2.0

// Package yamlkeys reads YAML that people write: it collects every problem, not
// the first one, and names each by its key path and what would be right.
package yamlkeys

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Reader collects the problems of one document.
type Reader struct {
	file     string
	problems []error
}

// Object is a mapping that is being read. Every getter marks its key as known;
// Done complains about the others.
type Object struct {
	r      *Reader
	path   string
	fields map[string]*yaml.Node
	known  []string
}

// Parse reads a document whose top is a mapping. The file name is for messages.
// Syntax errors are returned at once; an empty document is an empty mapping.
func Parse(file string, data []byte) (*Reader, *Object, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	r := &Reader{file: file}
	if len(doc.Content) == 0 {
		return r, &Object{r: r}, nil
	}
	return r, r.object("", doc.Content[0]), nil
}

// Problem notes one, with the key path it is about.
func (r *Reader) Problem(path, format string, args ...any) {
	r.problems = append(r.problems, fmt.Errorf("%s: %s: %s", r.file, path, fmt.Sprintf(format, args...)))
}

// Err returns all problems, in the order in which they were found.
func (r *Reader) Err() error { return errors.Join(r.problems...) }

func (r *Reader) object(path string, n *yaml.Node) *Object {
	o := &Object{r: r, path: path, fields: map[string]*yaml.Node{}}
	o.fill(n, map[*yaml.Node]bool{})
	return o
}

// fill takes the pairs of a mapping, merge keys (<<) included; a mapping's own
// keys win over merged ones. A mapping is taken once: the second time it could
// add nothing, and one that merges itself would never end.
func (o *Object) fill(n *yaml.Node, taken map[*yaml.Node]bool) {
	n = deref(n)
	if taken[n] {
		return
	}
	taken[n] = true
	if n.Kind != yaml.MappingNode {
		if n.Tag != "!!null" {
			o.r.Problem(o.describe(), "is %s, want a mapping of keys", shape(n))
		}
		return
	}
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Tag == "!!merge" {
			merges = append(merges, value)
			continue
		}
		if _, ok := o.fields[key.Value]; !ok {
			o.fields[key.Value] = value
		}
	}
	for _, m := range merges {
		if m = deref(m); m.Kind == yaml.SequenceNode {
			for _, each := range m.Content {
				o.fill(each, taken)
			}
			continue
		}
		o.fill(m, taken)
	}
}

// Path is the object's key path with one more key.
func (o *Object) Path(key string) string {
	if o.path == "" {
		return key
	}
	return o.path + "." + key
}

// Problem notes one about a key of the object.
func (o *Object) Problem(key, format string, args ...any) {
	o.r.Problem(o.Path(key), format, args...)
}

// Has says whether the key was written.
func (o *Object) Has(key string) bool { _, ok := o.fields[key]; return ok }

// Keys are all keys that were written, sorted.
func (o *Object) Keys() []string {
	keys := make([]string, 0, len(o.fields))
	for k := range o.fields {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// Done complains about keys that no getter asked for.
func (o *Object) Done() {
	for _, k := range o.Keys() {
		if !slices.Contains(o.known, k) {
			known := slices.Compact(slices.Sorted(slices.Values(o.known)))
			o.Problem(k, "unknown key; here may stand %s", strings.Join(known, ", "))
		}
	}
}

func (o *Object) scalar(key, want string) (string, bool) {
	o.known = append(o.known, key)
	n, ok := o.fields[key]
	if !ok {
		return "", false
	}
	if n = deref(n); n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		o.Problem(key, "is %s, want %s", shape(n), want)
		return "", false
	}
	return n.Value, true
}

// String reads a string.
func (o *Object) String(key, def string) string {
	if s, ok := o.scalar(key, "a string"); ok {
		return s
	}
	return def
}

// OneOf reads a string out of a few.
func (o *Object) OneOf(key, def string, allowed ...string) string {
	s := o.String(key, def)
	if !slices.Contains(allowed, s) {
		o.Problem(key, "%q is not one of %s", s, strings.Join(allowed, ", "))
		return def
	}
	return s
}

// Int reads a whole number that is at least low.
func (o *Object) Int(key string, def, low int) int {
	s, ok := o.scalar(key, "a whole number")
	if !ok {
		return def
	}
	v, err := strconv.Atoi(strings.ReplaceAll(s, "_", ""))
	if err != nil {
		o.Problem(key, "%q is not a whole number", s)
		return def
	}
	if v < low {
		o.Problem(key, "%d is not at least %d", v, low)
		return def
	}
	return v
}

// Float reads a number in [low, high].
func (o *Object) Float(key string, def, low, high float64) float64 {
	s, ok := o.scalar(key, "a number")
	if !ok {
		return def
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		o.Problem(key, "%q is not a number", s)
		return def
	}
	if !(v >= low && v <= high) {
		o.Problem(key, "%v is not in [%v, %v]", v, low, high)
		return def
	}
	return v
}

// Duration reads a Go duration that is not negative.
func (o *Object) Duration(key string, def time.Duration) time.Duration {
	s, ok := o.scalar(key, "a duration like 10m or 8ms")
	if !ok {
		return def
	}
	v, err := time.ParseDuration(s)
	if err != nil || v < 0 {
		o.Problem(key, "%q is not a duration like 10m or 8ms, zero or above", s)
		return def
	}
	return v
}

// Bool reads true or false.
func (o *Object) Bool(key string, def bool) bool {
	s, ok := o.scalar(key, "true or false")
	if !ok {
		return def
	}
	if s != "true" && s != "false" {
		o.Problem(key, "%q is neither true nor false", s)
		return def
	}
	return s == "true"
}

// Object reads a mapping; one that is missing is empty.
func (o *Object) Object(key string) *Object {
	o.known = append(o.known, key)
	n, ok := o.fields[key]
	if !ok {
		return &Object{r: o.r, path: o.Path(key)}
	}
	return o.r.object(o.Path(key), n)
}

// Objects reads a list of mappings.
func (o *Object) Objects(key string) []*Object {
	o.known = append(o.known, key)
	n, ok := o.fields[key]
	if !ok {
		return nil
	}
	if n = deref(n); n.Kind != yaml.SequenceNode {
		if n.Tag != "!!null" {
			o.Problem(key, "is %s, want a list", shape(n))
		}
		return nil
	}
	out := make([]*Object, len(n.Content))
	for i, each := range n.Content {
		out[i] = o.r.object(fmt.Sprintf("%s[%d]", o.Path(key), i), each)
	}
	return out
}

// Strings reads a mapping from strings to strings, such as labels.
func (o *Object) Strings(key string) map[string]string {
	inner := o.Object(key)
	out := make(map[string]string, len(inner.fields))
	for _, k := range inner.Keys() {
		out[k] = inner.String(k, "")
	}
	return out
}

func (o *Object) describe() string {
	if o.path == "" {
		return "the document"
	}
	return o.path
}

func deref(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func shape(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "empty"
	}
	return fmt.Sprintf("%q", n.Value)
}
