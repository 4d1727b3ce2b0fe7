// SPDX-License-Identifier: Apache-2.0

package openslo

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// files writes files, each an SLO named after its base name, and links below a new directory and enters it.
func files(t *testing.T, names []string, links map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for _, file := range names {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		name := strings.TrimLeft(strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)), ".")
		require.NoError(t, os.WriteFile(file, []byte(threshold(name, name, "metric: a_seconds", "lte", "1")), 0o600))
	}
	for link, target := range links {
		require.NoError(t, os.MkdirAll(filepath.Dir(link), 0o700))
		require.NoError(t, os.Symlink(target, link))
	}
}

func loaded(t *testing.T, paths ...string) []string {
	t.Helper()
	c, err := Load(paths)
	require.NoError(t, err)
	assert.Len(t, c.SLOs, len(c.Files))
	return c.Files
}

func TestFilesGlobsAndDirectoriesAreFound(t *testing.T) {
	files(t, []string{"slo/a.yaml", "slo/b.yml", "slo/c.json", "slo/.d.yaml", "slo/sub/e.yaml", "slo/sub/.git/f.yaml", "g.txt", "slo/h[1].yaml"}, nil)
	require.NoError(t, os.WriteFile("slo/h[1].yaml", nil, 0o600))
	f := func(want string, paths ...string) {
		t.Helper()
		c, err := Load(paths)
		require.NoError(t, err)
		assert.Equal(t, want, strings.Join(c.Files, " "))
	}
	f("slo/a.yaml slo/b.yml slo/h[1].yaml slo/sub/e.yaml", "slo")
	f("slo/a.yaml", "slo/a.yaml")
	f("slo/h[1].yaml", "slo/h[1].yaml") // a file before a glob
	f("slo/a.yaml slo/h[1].yaml", "slo/*.yaml")
	f("g.txt", "g.txt") // named, so read whatever its ending
	f("slo/.d.yaml", "slo/.d.yaml")
	f("slo/.d.yaml", "slo/.*.yaml")
	f("slo/sub/e.yaml", "s*/sub")
	f("slo/a.yaml slo/b.yml slo/h[1].yaml slo/sub/e.yaml", "slo/a.yaml", "./slo/a.yaml", "slo", "slo/*.yaml", "slo/sub")
	f("slo/sub/e.yaml slo/a.yaml slo/b.yml slo/h[1].yaml", "slo/sub", "slo")
}

// Scenario: the mount of a Kubernetes ConfigMap: a folder with the data, ..data that links to it, and a link a
// key through ..data. Guarantees: each key is read once.
func TestAMountedConfigMapIsReadOnce(t *testing.T) {
	files(t, []string{"m/..2026_01/a.yaml", "m/..2026_01/sub/b.yaml"},
		map[string]string{"m/..data": "..2026_01", "m/a.yaml": "..data/a.yaml", "m/sub": "..data/sub"})
	assert.Equal(t, []string{"m/a.yaml", "m/sub/b.yaml"}, loaded(t, "m"))
	assert.Equal(t, []string{"m/a.yaml", "m/sub/b.yaml"}, loaded(t, "m/*"))
	assert.Equal(t, []string{"m/..data/a.yaml", "m/..data/sub/b.yaml"}, loaded(t, "m/..data", "m"))
}

func TestLinksThatTurnInCirclesAreFollowedOnce(t *testing.T) {
	files(t, []string{"d/a.yaml"}, map[string]string{"d/loop": ".", "d/sub/up": "../../d"})
	assert.Equal(t, []string{"d/a.yaml"}, loaded(t, "d"))
}

func TestAPathThatLeadsNowhereIsAProblem(t *testing.T) {
	files(t, []string{"slo/a.yaml", "empty/x.txt"}, map[string]string{"slo/dangling.yaml": "nowhere"})
	require.NoError(t, syscall.Mkfifo("pipe", 0o600))
	_, err := Load([]string{"slo", "missing.yaml", "slo/*.yml", "slo/**/*.yaml", "slo/[", "empty", "pipe"})
	var ps Problems
	require.ErrorAs(t, err, &ps)
	assert.Equal(t, strings.Join([]string{
		"empty: holds no *.yaml or *.yml: name another directory, or the file itself",
		"missing.yaml: no such file or directory: correct the path",
		"pipe: is no regular file: name a file or a directory",
		"slo/**/*.yaml: ** is not known in a glob: name the directory, it is read with its subdirectories",
		"slo/*.yml: matches no file: correct the glob",
		"slo/[: is no glob: syntax error in pattern",
		"slo/dangling.yaml: cannot be read: no such file or directory",
	}, "\n"), ps.Error())
}

// Scenario: one file is missing, and a policy refers to an SLO in it. Guarantees: the missing file is reported,
// with the other files' mistakes, and the reference is not.
func TestAMissingFileIsNotReportedTwice(t *testing.T) {
	files(t, nil, nil)
	require.NoError(t, os.WriteFile("p.yaml", []byte(`apiVersion: otelcol-llm.dev/v1alpha1
kind: ViolationPolicy
metadata: {name: p}
spec: {window: 0s, when: {slo: elsewhere}}
`), 0o600))
	_, err := Load([]string{"p.yaml", "missing.yaml"})
	require.EqualError(t, err, "missing.yaml: no such file or directory: correct the path\n"+
		"p.yaml:4: spec.window: 0s is shorter than a second: write e.g. 5m")
}

func TestALargeFileIsNotReadWhole(t *testing.T) {
	files(t, nil, nil)
	file, err := os.Create("large.yaml")
	require.NoError(t, err)
	require.NoError(t, file.Truncate(1<<40))
	require.NoError(t, file.Close())
	_, err = Load([]string{"large.yaml"})
	require.EqualError(t, err, "large.yaml:1: is longer than 4194304 bytes: split it")
}

func TestSourcesAreReadBesidesPaths(t *testing.T) {
	files(t, []string{"a.yaml"}, nil)
	c, err := Load([]string{"a.yaml"}, sloSource("b", "p", "a"))
	require.NoError(t, err)
	assert.Equal(t, []string{"b.yaml", "a.yaml"}, c.Files)
	assert.Len(t, c.SLOs, 2)
}
