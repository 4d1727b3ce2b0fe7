// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/selection"
)

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(data)
}

// blocks are the fenced examples of a document, in a language.
func blocks(document, language string) (found []string) {
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(document, -1) {
		found = append(found, m[1])
	}
	return found
}

// Scenario: a reader copies what docs/slo-files.md shows, or makes one of the mistakes it lists. Guarantees: the examples
// are right together, and each mistake is told in the very words, once, and nothing else is.
func TestTheGuideToSLOFilesIsTrue(t *testing.T) {
	guide := read(t, "../../docs/slo-files.md")
	examples := strings.Join(blocks(guide, "yaml"), "---\n")
	opts, err := selection.Checked()
	require.NoError(t, err)
	parse := func(doc string) openslo.Problems {
		_, err := openslo.ParseWith(opts, openslo.Source{Name: "chat.yaml", Data: []byte(doc)})
		ps, _ := err.(openslo.Problems) //nolint:errorlint // the very error that is documented
		return ps
	}
	require.Empty(t, parse(examples))

	row := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `([^`]+)` \\| (.*) \\|$")
	_, table, found := strings.Cut(guide, "## Mistakes")
	require.True(t, found)
	rows := row.FindAllStringSubmatch(table, -1)
	require.Len(t, rows, 27)
	for _, m := range rows {
		right, wrong, said := m[1], m[2], m[3]
		require.Contains(t, examples, right)
		var got []string
		for _, p := range parse(strings.Replace(examples, right, wrong, 1)) {
			got = append(got, "`"+p.Path+": "+p.Message+"`")
		}
		if len(got) == 0 {
			got = []string{"no problem"}
			said, _, _ = strings.Cut(said, ":")
		}
		assert.Equal(t, []string{said}, got, wrong)
	}
}

// Scenario: a reader of the README types what stands behind a $. Guarantees: it says what the README shows, where a line
// of an ellipsis stands for what was left out.
func TestTheExamplesOfTheReadmeAreReal(t *testing.T) {
	ran := 0
	for _, block := range blocks(read(t, "README.md"), "console") {
		for _, example := range strings.Split(block, "$ ")[1:] {
			command, want, _ := strings.Cut(example, "\n")
			args := strings.Fields(command)
			require.Equal(t, "slo", args[0])
			out, errOut, _ := run(t, "", args[1:]...)
			got := out + errOut
			parts := strings.Split(want, "…\n")
			for i, part := range parts {
				at := strings.Index(got, part)
				require.GreaterOrEqual(t, at, 0, "%s does not say %s", command, part)
				if i == 0 {
					assert.Zero(t, at, command)
				}
				got = got[at+len(part):]
			}
			if last := parts[len(parts)-1]; last != "" {
				assert.Empty(t, got, command)
			}
			ran++
		}
	}
	assert.Equal(t, 5, ran)
}

func TestEveryCommandAndFlagStandsInTheReadme(t *testing.T) {
	readme := read(t, "README.md")
	root := newRoot(nil, nil, nil)
	for _, cmd := range root.Commands() {
		assert.Contains(t, readme, "### `slo "+cmd.Name(), cmd.Name())
		if cmd.HasSubCommands() {
			continue // the shells of completion
		}
		for _, flag := range regexp.MustCompile(`--([a-z]+)`).FindAllString(cmd.LocalFlags().FlagUsages(), -1) {
			assert.Contains(t, readme, "| `"+flag, "%s %s", cmd.Name(), flag)
		}
	}
}
