// SPDX-License-Identifier: Apache-2.0

package distribution

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

var code = regexp.MustCompile("`([^`]+)`")

// Guarantees: each direct dependency has its reason in docs/dependencies.md, and what is explained there is needed.
func TestEveryDirectDependencyIsExplained(t *testing.T) {
	var explained []string
	for _, row := range firstColumn(t, "Direct dependencies") {
		explained = append(explained, row...)
	}
	require.NotEmpty(t, explained)

	needed := required(t)
	for _, name := range explained {
		prefix, isPrefix := strings.CutSuffix(name, "/…")
		assert.True(t, slices.ContainsFunc(needed, func(r *modfile.Require) bool {
			return r.Mod.Path == name || isPrefix && strings.HasPrefix(r.Mod.Path, prefix+"/")
		}), "docs/dependencies.md explains %s, which is not in go.mod", name)
	}
	for _, r := range needed {
		dependency := r.Mod.Path
		if r.Indirect {
			continue
		}
		found := false
		for _, name := range explained {
			prefix, isPrefix := strings.CutSuffix(name, "/…")
			found = found || name == dependency || isPrefix && strings.HasPrefix(dependency, prefix+"/")
		}
		assert.True(t, found, "%s is in go.mod, but docs/dependencies.md does not say why", dependency)
	}
}

// Guarantees: docs/dependencies.md does not claim that something was left out which is in.
func TestWhatIsLeftOutIsNotIn(t *testing.T) {
	in := map[string]bool{}
	for _, modules := range readManifest(t) {
		for _, m := range modules {
			goMod, _, _ := strings.Cut(m.GoMod, " ")
			in[path.Base(goMod)] = true
		}
	}
	rows := firstColumn(t, "Left out of the distribution")
	require.NotEmpty(t, rows)
	for _, row := range rows {
		for _, name := range row {
			assert.False(t, in[name], "%s is in the manifest", name)
		}
	}
}

func required(t *testing.T) []*modfile.Require {
	t.Helper()
	file := filepath.Join(spawn.Root(t), "go.mod")
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	mod, err := modfile.Parse(file, content, nil)
	require.NoError(t, err)
	return mod.Require
}

// firstColumn returns what stands in code quotes in the first column of the table under a heading, row by row.
func firstColumn(t *testing.T, heading string) [][]string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(spawn.Root(t), "docs", "dependencies.md"))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(content), "\n## "+heading+"\n")
	require.True(t, found, "docs/dependencies.md has no section %q", heading)
	section, _, _ = strings.Cut(section, "\n## ")

	var rows [][]string
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		var names []string
		for _, m := range code.FindAllStringSubmatch(cells[1], -1) {
			names = append(names, m[1])
		}
		if len(names) > 0 {
			rows = append(rows, names)
		}
	}
	return rows
}
