// SPDX-License-Identifier: Apache-2.0

package openslo

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// value is a YAML node with the path that leads to it, so that every complaint can name file, line and path.
// Its readers (text, number, list …) report what is wrong and then return false.
type value struct {
	log  *journal
	file string
	path string
	node *yaml.Node
}

func (v value) pos() Position { return Position{File: v.file, Line: max(v.node.Line, 1)} }

func (v value) problemf(format string, args ...any) {
	v.log.add(Problem{File: v.file, Line: v.pos().Line, Path: v.path, Message: fmt.Sprintf(format, args...)})
}

func (v value) null() bool { return v.node.Kind == yaml.ScalarNode && v.node.ShortTag() == "!!null" }

// what names the kind of a node for complaints.
func (v value) what() string {
	switch v.node.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch v.node.ShortTag() {
	case "!!null":
		return "null"
	case "!!int", "!!float":
		return v.node.Value + ", a number"
	case "!!bool":
		return v.node.Value + ", a boolean"
	case "!!timestamp":
		return v.node.Value + ", a date"
	case "!!str":
		return shown(v.node.Value) + ", text"
	default:
		return "a value with the tag " + v.node.ShortTag()
	}
}

// shown quotes what a user wrote, at a length that leaves the complaint readable.
func shown(s string) string {
	const most = 80
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return strconv.Quote(s)
}

var plainKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

func (v value) child(key string, node *yaml.Node) value {
	path := v.path
	switch {
	case !plainKey.MatchString(key):
		path += "[" + shown(key) + "]"
	case path == "":
		path = key
	default:
		path += "." + key
	}
	return value{log: v.log, file: v.file, path: path, node: node}
}

// object is a mapping that was opened.
type object struct {
	value
	fields map[string]value
	keys   []string        // as written
	meant  map[string]bool // known keys of which a near miss was reported: they are not missing as well
	empty  []string        // keys behind which nothing may stand
}

// object opens a mapping whose keys are among known. Unknown, doubled and null ones are reported.
func (v value) object(known ...string) (object, bool) { return v.objectWith(nil, known...) }

// objectWith is object for a mapping in which nothing may stand behind some of the keys; they then count as absent.
func (v value) objectWith(empty []string, known ...string) (object, bool) {
	o, ok := v.open(empty)
	if !ok {
		return o, false
	}
	for _, key := range o.keys {
		if !slices.Contains(known, key) {
			o.unknown(key, known)
		}
	}
	return o, true
}

func (o *object) unknown(key string, known []string) {
	at := o.value
	at.node = o.fields[key].node
	for i := 0; i+1 < len(o.node.Content); i += 2 {
		if o.node.Content[i].Value == key {
			at.node = o.node.Content[i]
		}
	}
	if near := nearest(key, known); near != "" {
		o.meant[near] = true
		at.problemf("unknown key %s: did you mean %s?", shown(key), near)
		return
	}
	at.problemf("unknown key %s: known here are %s", shown(key), join(known, "and"))
}

// mapping opens a mapping with whatever keys it has.
func (v value) mapping() (object, bool) { return v.open(nil) }

func (v value) open(empty []string) (object, bool) {
	o := object{value: v, fields: make(map[string]value), meant: make(map[string]bool), empty: empty}
	if v.node.Kind != yaml.MappingNode {
		v.problemf("is %s: write a mapping (key: value)", v.what())
		return o, false
	}
	o.fill(v.node, false)
	return o, true
}

// fill adds the pairs of a mapping. Those that a merge key (<<) brings in come after the mapping's own, and
// never replace one.
func (o *object) fill(node *yaml.Node, merged bool) {
	for i := 0; i+1 < len(node.Content); i += 2 {
		k, n := node.Content[i], node.Content[i+1]
		key := value{log: o.log, file: o.file, path: o.path, node: k}
		if k.Kind != yaml.ScalarNode {
			key.problemf("a key is %s: write text", key.what())
			continue
		}
		if k.ShortTag() == "!!merge" {
			continue
		}
		if first, taken := o.fields[k.Value]; taken {
			if !merged {
				key.problemf("key %s stands twice, first in line %d: keep one", shown(k.Value), first.node.Line)
			}
			continue
		}
		child := o.child(k.Value, n)
		if child.null() && !slices.Contains(o.empty, k.Value) {
			child.problemf("is null: give it a value or remove the key")
		}
		o.fields[k.Value] = child
		o.keys = append(o.keys, k.Value)
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if k, n := node.Content[i], node.Content[i+1]; k.ShortTag() == "!!merge" {
			o.merge(value{log: o.log, file: o.file, path: o.path, node: n})
		}
	}
}

func (o *object) merge(v value) {
	switch v.node.Kind {
	case yaml.MappingNode:
		o.fill(v.node, true)
	case yaml.SequenceNode:
		for _, n := range v.node.Content {
			if n.Kind != yaml.MappingNode {
				v.problemf("the merge key << holds a list with %s: merge mappings", value{node: n}.what())
				return
			}
			o.fill(n, true)
		}
	default:
		v.problemf("the merge key << holds %s: merge a mapping", v.what())
	}
}

// has tells whether the key was written, even as null.
func (o object) has(key string) bool { _, ok := o.fields[key]; return ok }

// get is the value of an optional key. A null was reported when the mapping was opened and counts as absent.
func (o object) get(key string) (value, bool) {
	v, ok := o.fields[key]
	return v, ok && !v.null()
}

// need is get for a required key; hint says what to write.
func (o object) need(key, hint string) (value, bool) {
	if !o.has(key) && o.meant[key] {
		return value{}, false
	}
	if !o.has(key) {
		o.child(key, o.node).problemf("missing: %s", hint)
		return value{}, false
	}
	return o.get(key)
}

// optional is the text of a key, or "".
func (o object) optional(key string) string {
	if v, ok := o.get(key); ok {
		s, _ := v.text()
		return s
	}
	return ""
}

func (v value) text() (string, bool) {
	if v.node.Kind != yaml.ScalarNode {
		v.problemf("is %s: write text", v.what())
		return "", false
	}
	if v.node.ShortTag() != "!!str" {
		v.problemf("is %s: write it in quotes", v.what())
		return "", false
	}
	if strings.TrimSpace(v.node.Value) == "" {
		v.problemf("is empty: give it a value or remove the key")
		return "", false
	}
	return v.node.Value, true
}

// quantity is a text that begins with a number and needs a unit behind it.
func (v value) quantity(example string) (string, bool) {
	if _, err := strconv.ParseFloat(v.node.Value, 64); err == nil && v.node.Kind == yaml.ScalarNode {
		v.problemf("%s has no unit: write e.g. %s", v.node.Value, example)
		return "", false
	}
	return v.text()
}

func (v value) number() (float64, bool) {
	tag := v.node.ShortTag()
	if v.node.Kind != yaml.ScalarNode || (tag != "!!int" && tag != "!!float") {
		if _, err := strconv.ParseFloat(v.node.Value, 64); err == nil && tag == "!!str" {
			v.problemf("is %s: write the number without quotes", v.what())
		} else {
			v.problemf("is %s: write a number", v.what())
		}
		return 0, false
	}
	var f float64
	if err := v.node.Decode(&f); err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		v.problemf("%s is no finite number: write one", v.node.Value)
		return 0, false
	}
	return f, true
}

func (v value) boolean() (bool, bool) {
	var b bool
	if v.node.Kind != yaml.ScalarNode || v.node.ShortTag() != "!!bool" || v.node.Decode(&b) != nil {
		v.problemf("is %s: write true or false", v.what())
		return false, false
	}
	return b, true
}

// list opens a list that is not empty.
func (v value) list() ([]value, bool) {
	if v.node.Kind == yaml.SequenceNode && len(v.node.Content) == 0 {
		v.problemf("is empty: list at least one")
		return nil, false
	}
	items := v.listOrNone()
	return items, len(items) > 0
}

// listOrNone opens a list that may be empty.
func (v value) listOrNone() []value {
	if v.node.Kind != yaml.SequenceNode {
		v.problemf("is %s: write a list (- …)", v.what())
		return nil
	}
	items := make([]value, 0, len(v.node.Content))
	for i, n := range v.node.Content {
		item := value{log: v.log, file: v.file, path: v.path + "[" + strconv.Itoa(i) + "]", node: n}
		if item.null() {
			item.problemf("is null: give it a value or remove it")
			continue
		}
		items = append(items, item)
	}
	return items
}

// oneOf reads a value of an enumeration.
func oneOf[T ~string](v value, allowed ...T) (T, bool) {
	s, ok := v.text()
	if !ok {
		return "", false
	}
	if !slices.Contains(allowed, T(s)) {
		near := ""
		if n := nearest(s, strs(allowed)); n != "" {
			near = fmt.Sprintf(" (did you mean %s?)", n)
		}
		v.problemf("%s is not known: write %s%s", shown(s), either(strs(allowed)), near)
		return "", false
	}
	return T(s), true
}

// scalar is the text of a scalar of any type, unchecked.
func (v value) scalar() (string, bool) {
	return v.node.Value, v.node.Kind == yaml.ScalarNode
}
