// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// Guarantees: what the page says of a cause, and how it is seen, are the words of the rules that come with gpu_leak, of which no metric tells
// more than the name.
func TestCausesAreThoseOfTheRules(t *testing.T) {
	text, err := os.ReadFile("../../connector/gpuleakconnector/internal/cause/rules.yaml")
	require.NoError(t, err)
	var file struct {
		Rules []struct{ Cause, Text, Verify string }
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	require.NotEmpty(t, file.Rules)
	var want strings.Builder
	quote := func(s string) string {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		require.NoError(t, e.Encode(s))
		return strings.TrimSpace(b.String())
	}
	for _, r := range file.Rules {
		want.WriteString("  " + r.Cause + ": {\n    text: " + quote(strings.TrimSpace(r.Text)) + ",\n    verify: " + quote(r.Verify) + ",\n  },\n")
	}
	page, err := os.ReadFile("web/js/causes.js")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(page), "export const causes = {\n")
	got, _, _ := strings.Cut(rest, "};\n")
	assert.Equal(t, want.String(), got, "web/js/causes.js: write what is wanted here into it")
}
