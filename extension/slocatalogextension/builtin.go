// SPDX-License-Identifier: Apache-2.0

package slocatalogextension

import (
	"embed"
	"slices"
	"strings"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/selection"
)

// builtinScheme begins a path that names an embedded sample.
const builtinScheme = "builtin:"

//go:embed samples/*.yaml
var samples embed.FS

// builtinNames are the names of the embedded samples, sorted.
func builtinNames() []string {
	entries, err := samples.ReadDir("samples")
	if err != nil {
		panic(err) // the folder is in the binary
	}
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = strings.TrimSuffix(entry.Name(), ".yaml")
	}
	return names
}

func isBuiltin(name string) bool { return slices.Contains(builtinNames(), name) }

// load reads the catalog that paths lead to. Expressions are compiled too, so that a broken one is told with its line.
func load(paths []string) (*openslo.Catalog, error) {
	var files []string
	var sources []openslo.Source
	for _, path := range paths {
		name, builtin := strings.CutPrefix(path, builtinScheme)
		if !builtin {
			files = append(files, path)
			continue
		}
		twice := slices.ContainsFunc(sources, func(s openslo.Source) bool { return s.Name == path })
		if twice {
			continue // read once, as a file that two paths lead to
		}
		data, err := samples.ReadFile("samples/" + name + ".yaml")
		if err != nil {
			return nil, err // Validate knows which there are
		}
		sources = append(sources, openslo.Source{Name: path, Data: data})
	}
	opts, err := selection.Checked()
	if err != nil {
		return nil, err
	}
	return openslo.LoadWith(opts, files, sources...)
}
