// SPDX-License-Identifier: Apache-2.0

package tenantcheckconverter

import (
	"regexp"
	"slices"

	"github.com/otelcol-llm/otelcol-llm/internal/labels"
)

// kept says where the tenant of a point stands.
type kept struct{ resource, points bool }

// after is where it stands behind the processors of a pipeline. Of the shapes that a configuration can have, those are known that put
// it there for every point, and those that take it away.
func (c config) after(pipeline map[string]any) kept {
	k := kept{resource: true}
	for _, id := range texts(pipeline["processors"]) {
		of := mapAt(c, "processors", id)
		switch typeOf(id) {
		case "transform":
			k.transform(of["metric_statements"])
		case "resource":
			k.resource = k.resource && !changes(of["attributes"])
		case "attributes":
			k.points = k.points && !changes(of["actions"])
		}
	}
	return k
}

// changes reports whether actions, as of the attributes processor, make something else of the tenant, or nothing.
func changes(actions any) bool {
	list, _ := actions.([]any)
	return slices.ContainsFunc(list, func(a any) bool {
		action, _ := a.(map[string]any)
		return action["key"] == labels.Tenant && action["action"] != "insert"
	})
}

// transform follows statements, which are texts or groups of them.
func (k *kept) transform(statements any) {
	list, _ := statements.([]any)
	for _, s := range list {
		switch s := s.(type) {
		case string:
			k.statement("", s)
		case map[string]any:
			context, _ := s["context"].(string)
			for _, text := range texts(s["statements"]) {
				for _, condition := range texts(s["conditions"]) {
					text += " where " + condition
				}
				k.statement(context, text)
			}
		}
	}
}

var (
	// call is a statement that changes attributes, or the tenant among them: the function, the context, the key, and the rest.
	call = regexp.MustCompile(`^\s*(\w+)\(\s*(?:(\w+)\.)?attributes(\["` + labels.Tenant + `"\])?\s*,\s*(.*)$`)
	// fromResource is the rest of one that sets it to that of the resource, and the conditions.
	fromResource = regexp.MustCompile(`^resource\.attributes\["` + labels.Tenant + `"\]\s*\)(.*)$`)
	quoted       = regexp.MustCompile(`"([^"]*)"`)
)

func (k *kept) statement(context, text string) {
	m := call.FindStringSubmatch(text)
	if m == nil {
		return
	}
	function, key, rest := m[1], m[3], m[4]
	if m[2] != "" {
		context = m[2]
	}
	var here *bool
	switch context {
	case "datapoint":
		here = &k.points
	case "resource":
		here = &k.resource
	default:
		return
	}
	names := quoted.FindAllStringSubmatch(rest, -1)
	switch function {
	case "set":
		// Where a condition asks for anything but the tenant, there are points without.
		set := fromResource.FindStringSubmatch(rest)
		always := set != nil && !slices.ContainsFunc(quoted.FindAllStringSubmatch(set[1], -1), func(name []string) bool { return name[1] != labels.Tenant })
		*here = key != "" && always && k.resource || key != "" && set != nil && *here
	case "delete_key", "delete_matching_keys":
		*here = *here && !meant(function, names)
	case "keep_keys", "keep_matching_keys":
		*here = *here && meant(function, names)
	}
}

// meant reports whether the tenant is among the keys that a function is given, by name or by a pattern.
func meant(function string, names [][]string) bool {
	return slices.ContainsFunc(names, func(name []string) bool {
		if function == "delete_key" || function == "keep_keys" {
			return name[1] == labels.Tenant
		}
		pattern, err := regexp.Compile(name[1])
		return err == nil && pattern.MatchString(labels.Tenant)
	})
}
