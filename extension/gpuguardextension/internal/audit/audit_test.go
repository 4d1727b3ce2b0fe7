// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return "none"
	}
	require.NoError(t, err)
	return string(data)
}

func TestAFileIsOfOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	f, err := Open(path, 10, 2)
	require.NoError(t, err)
	_, err = Open(path, 10, 2)
	require.EqualError(t, err, path+": another guard writes it: give each a file of its own")
	require.NoError(t, f.Close())
	f, err = Open(path, 10, 2)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func TestLinesAreThereAndTheFileIsSetAsideWhenItIsFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	f, err := Open(path, 10, 2)
	require.NoError(t, err)
	for _, line := range []string{"aaaa", "bbbb", "cccc", "dddd", "eeee", "ffff", "a line that is longer than the file may be", "gggg"} {
		require.NoError(t, f.Append([]byte(line)))
	}
	require.NoError(t, f.Close())
	require.NoError(t, f.Close())
	assert.Equal(t, "gggg\n", content(t, path))
	assert.Equal(t, "a line that is longer than the file may be\n", content(t, path+".1"))
	assert.Equal(t, "eeee\nffff\n", content(t, path+".2"))
	assert.Equal(t, "none", content(t, path+".3"))
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestWithoutBackupsTheFileBeginsAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	f, err := Open(path, 10, 0)
	require.NoError(t, err)
	for range 5 {
		require.NoError(t, f.Append([]byte("aaaa")))
	}
	require.NoError(t, f.Close())
	assert.Equal(t, "aaaa\n", content(t, path))
	assert.Equal(t, "none", content(t, path+".1"))
}

func TestALineThatACrashCutShortDoesNotSpoilTheNext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	require.NoError(t, os.WriteFile(path, []byte("whole\n{half"), 0o600))
	f, err := Open(path, 1<<20, 1)
	require.NoError(t, err)
	require.NoError(t, f.Append([]byte("next")))
	require.NoError(t, f.Close())
	assert.Equal(t, "whole\n{half\nnext\n", content(t, path))
	f, err = Open(path, 1<<20, 1)
	require.NoError(t, err)
	require.NoError(t, f.Append([]byte("last")))
	require.NoError(t, f.Close())
	assert.Equal(t, "whole\n{half\nnext\nlast\n", content(t, path))
}

// Scenario: the folder is taken away while the file is set aside, and comes back.
// Guarantees: that is an error, and the next line is written.
func TestAFileThatCannotBeWrittenIsTriedAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x")
	require.NoError(t, os.Mkdir(dir, 0o700))
	path := filepath.Join(dir, "audit.jsonl")
	f, err := Open(path, 10, 1)
	require.NoError(t, err)
	require.NoError(t, f.Append([]byte(strings.Repeat("a", 9))))
	require.NoError(t, os.Rename(dir, dir+".away"))
	require.Error(t, f.Append([]byte("bbbb")))
	require.NoError(t, os.Rename(dir+".away", dir))
	require.NoError(t, f.Append([]byte("cccc")))
	require.NoError(t, f.Close())
	assert.Contains(t, content(t, path), "cccc\n")
}

func TestReplaceIsAllOrNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state")
	require.NoError(t, Replace(path, []byte("one")))
	require.NoError(t, Replace(path, []byte("two")))
	assert.Equal(t, "two", content(t, path))
	require.Error(t, Replace(filepath.Join(dir, "none", "state"), []byte("x")))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 1, "nothing stays behind")
}
