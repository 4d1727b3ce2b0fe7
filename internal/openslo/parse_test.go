// SPDX-License-Identifier: Apache-2.0

package openslo

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the expected problems in testdata/*.bad.txt")

func source(t testing.TB, path string) Source {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return Source{Name: filepath.Base(path), Data: data}
}

// Scenario: files with every mistake there is a word for. Guarantees: each is told with file, line, path and
// what would be right, all of them at once, and nothing else is.
func TestEveryMistakeIsToldWithWhatWouldBeRight(t *testing.T) {
	files, err := filepath.Glob("testdata/*.bad.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			c, err := Parse(source(t, file))
			require.Error(t, err)
			assert.Nil(t, c, "one problem must be enough to withhold the catalog")
			golden := strings.TrimSuffix(file, ".yaml") + ".txt"
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(err.Error()+"\n"), 0o600))
			}
			want, readErr := os.ReadFile(golden)
			require.NoError(t, readErr)
			assert.Equal(t, strings.TrimSpace(string(want)), err.Error())
		})
	}
}
