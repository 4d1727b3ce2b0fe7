// SPDX-License-Identifier: Apache-2.0

// Package samples are the SLO files that come with the distribution, each a file beside this one. A path builtin:NAME
// leads to one wherever SLO files are named.
package samples

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// Scheme begins a path that leads to a sample.
const Scheme = "builtin:"

//go:embed *.yaml
var files embed.FS

// Names are the names of the samples, sorted.
func Names() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // the folder is in the binary
	}
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = strings.TrimSuffix(entry.Name(), ".yaml")
	}
	return names
}

// Check tells whether a path leads to a sample, and what is wrong with one that leads to none.
func Check(path string) (sample bool, err error) {
	name, sample := strings.CutPrefix(path, Scheme)
	if sample && !slices.Contains(Names(), name) {
		return true, fmt.Errorf("unknown builtin %q: known are %s", name, strings.Join(Names(), ", "))
	}
	return sample, nil
}

// Resolve splits paths into those of files and the samples that the others lead to, each once.
func Resolve(paths []string) (other []string, sources []openslo.Source, err error) {
	for _, path := range paths {
		sample, err := Check(path)
		if err != nil {
			return nil, nil, err
		}
		if !sample {
			other = append(other, path)
			continue
		}
		if slices.ContainsFunc(sources, func(s openslo.Source) bool { return s.Name == path }) {
			continue
		}
		data, err := files.ReadFile(strings.TrimPrefix(path, Scheme) + ".yaml")
		if err != nil {
			return nil, nil, err
		}
		sources = append(sources, openslo.Source{Name: path, Data: data})
	}
	return other, sources, nil
}
