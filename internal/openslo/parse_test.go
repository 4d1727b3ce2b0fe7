// SPDX-License-Identifier: Apache-2.0

package openslo

import (
	"errors"
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

// Scenario: a caller that compiles expressions. Guarantees: it is asked about each with its signal and kind, and what it
// says is a problem at the expression's place, beside all others and on one line.
func TestTheCallersCheckOfExpressionsIsHeard(t *testing.T) {
	data := `apiVersion: openslo/v1
kind: SLI
metadata: {name: spans}
spec:
  thresholdMetric:
    metricSource:
      type: opentelemetry
      spec:
        value: span.duration
        signal: traces
        condition: |
          span.name ==
          "x"
---
apiVersion: openslo/v1
kind: SLI
metadata: {name: points}
spec: {thresholdMetric: {metricSource: {type: opentelemetry, spec: {metric: a, kondition: b, condition: c}}}}
`
	var asked []string
	_, err := ParseWith(Options{Check: func(signal Signal, kind ExpressionKind, expression string) error {
		asked = append(asked, strings.Join([]string{string(signal), string(kind), expression}, " "))
		if kind == ExpressionValue {
			return nil
		}
		return errors.New("is no good:\n\ttry again")
	}}, Source{Name: "f", Data: []byte(data)})
	assert.Equal(t, []string{"traces condition span.name ==\n\"x\"\n", "traces value span.duration", "metrics condition c"}, asked)
	require.EqualError(t, err, `f:11: spec.thresholdMetric.metricSource.spec.condition: is no good: try again
f:18: spec.thresholdMetric.metricSource.spec: unknown key "kondition": did you mean condition?
f:18: spec.thresholdMetric.metricSource.spec.condition: is no good: try again`)
}
