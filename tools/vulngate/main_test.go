// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const report = `
{"config": {"scanner_name": "govulncheck"}}
{"osv": {"id": "GO-1", "summary": "has a fix"}}
{"osv": {"id": "GO-2", "summary": "has none"}}
{"finding": {"osv": "GO-1", "fixed_version": "v1.1.0", "trace": [{"module": "example.com/a", "version": "v1.0.0"}]}}
{"finding": {"osv": "GO-1", "fixed_version": "v1.1.0", "trace": [{"module": "example.com/a", "version": "v1.0.0", "package": "p"}]}}
{"finding": {"osv": "GO-2", "trace": [{"module": "example.com/b", "version": "v2.0.0"}]}}
`

func TestAFixableVulnerabilityFails(t *testing.T) {
	ok, out := gate(t, report, "")
	assert.False(t, ok)
	assert.Equal(t, 1, strings.Count(out, "FIXABLE  GO-1 example.com/a@v1.0.0, fixed in v1.1.0: has a fix"), out)
	assert.Contains(t, out, "no fix   GO-2")
}

func TestAnAllowedOnePasses(t *testing.T) {
	ok, out := gate(t, report, "# comment\n\nGO-1 not reached\n")
	assert.True(t, ok, out)
	assert.Contains(t, out, "not reached")
}

func TestAStaleLineFails(t *testing.T) {
	for name, list := range map[string]string{"unknown": "GO-1 x\nGO-9 y\n", "without a fix": "GO-1 x\nGO-2 y\n"} {
		t.Run(name, func(t *testing.T) {
			ok, out := gate(t, report, list)
			assert.False(t, ok)
			assert.Contains(t, out, "STALE")
		})
	}
}

func TestALineNeedsAReasonAndStandsOnce(t *testing.T) {
	for list, want := range map[string]string{"GO-1\n": "allow.txt:1: GO-1 has no reason", "GO-1 a\nGO-1 b": "allow.txt:2: GO-1 stands here twice"} {
		_, err := run(strings.NewReader(report), write(t, list), &strings.Builder{})
		require.ErrorContains(t, err, want)
	}
}

// Scenario: govulncheck died before it wrote anything. Guarantees: that is no clean bill of health.
func TestAnEmptyOrBrokenReportIsAnError(t *testing.T) {
	for _, broken := range []string{"", "{", `{"finding": 1}`} {
		_, err := run(strings.NewReader(broken), "", &strings.Builder{})
		assert.Error(t, err, broken)
	}
}

func gate(t *testing.T, report, allow string) (bool, string) {
	var out strings.Builder
	ok, err := run(strings.NewReader(report), write(t, allow), &out)
	require.NoError(t, err)
	return ok, out.String()
}

func write(t *testing.T, content string) string {
	file := filepath.Join(t.TempDir(), "allow.txt")
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	return file
}
