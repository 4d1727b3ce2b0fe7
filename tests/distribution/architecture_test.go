// SPDX-License-Identifier: Apache-2.0

package distribution

import (
	"errors"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// Guarantees: components never import each other, nor does internal/ import a component: they meet in internal/ or
// through an extension's interface. Only what builds or tests the whole may know several of them.
func TestComponentsNeverImportEachOther(t *testing.T) {
	root := spawn.Root(t)
	components := 0
	for _, folder := range []string{"receiver", "processor", "connector", "exporter", "extension", "confmap", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(file) != ".go" {
				return skipMissing(err)
			}
			rel, err := filepath.Rel(root, file)
			require.NoError(t, err)
			self := component(filepath.ToSlash(rel))
			if self != "" {
				components++
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
			require.NoError(t, err)
			for _, spec := range parsed.Imports {
				imported, err := strconv.Unquote(spec.Path.Value)
				require.NoError(t, err)
				own, ok := strings.CutPrefix(imported, ownModule+"/")
				if other := component(own); ok && other != "" {
					assert.Equal(t, self, other, "%s imports %s", rel, imported)
				}
			}
			return nil
		})
		require.NoError(t, skipMissing(err))
	}
	assert.Positive(t, components)
}

// component returns the component that a path is in, such as connector/sloconnector, or nothing.
func component(path string) string {
	parts := strings.Split(path, "/")
	if len(parts) < 2 || !slices.Contains([]string{"receiver", "processor", "connector", "exporter", "extension"}, parts[0]) {
		return ""
	}
	return parts[0] + "/" + parts[1]
}

// skipMissing forgives that a folder is not there: a kind of which there is no component yet.
func skipMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
