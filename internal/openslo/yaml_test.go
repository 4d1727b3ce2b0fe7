// SPDX-License-Identifier: Apache-2.0

package openslo

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/cputest"
)

func TestASyntaxErrorIsToldWithItsLine(t *testing.T) {
	f := func(data, want string) {
		t.Helper()
		_, err := Parse(Source{Name: "f", Data: []byte(data)})
		require.Error(t, err)
		assert.Equal(t, want, err.Error())
	}
	f("a: 1\nb: [1, 2\nc: 3\n", "f:2: is not YAML: did not find expected ',' or ']'")
	f("a: 1\nb: c: d\n", "f:2: is not YAML: mapping values are not allowed in this context")
	f("a: 1\nb:\n  - x\n  y: 2\n", "f:3: is not YAML: did not find expected '-' indicator")
	f("a: 1\n\tb: 2\n", "f:2: is not YAML: found a tab character that violates indentation")
	f("a: 1\nb: *nope\n", "f:1: is not YAML: unknown anchor 'nope' referenced")
}

// Scenario: "billion laughs", ten aliases each to ten of the level below. Guarantees: a problem, at once.
func TestAliasesOfAliasesAreAProblemAndNotAnOutage(t *testing.T) {
	var b strings.Builder
	b.WriteString("l0: &l0 [x, x, x, x, x, x, x, x, x, x]\n")
	for _, l := range []string{"01", "12", "23", "34", "45", "56", "67", "78", "89"} {
		b.WriteString("l" + l[1:] + ": &l" + l[1:] + " [" + strings.Repeat("*l"+l[:1]+", ", 9) + "*l" + l[:1] + "]\n")
	}
	took := cputest.Time(t, func() {
		_, err := Parse(Source{Name: "f", Data: []byte(b.String())})
		require.EqualError(t, err, "f:1: aliases stand for more than 100000 values: write them out")
	})
	assert.Less(t, took, 5*time.Second)
}

func TestAnAliasInsideItsOwnAnchorIsAProblem(t *testing.T) {
	_, err := Parse(Source{Name: "f", Data: []byte("kind: SLO\nspec: &a\n  b: *a\n")})
	require.EqualError(t, err, "f:3: alias *a stands inside its own anchor: write the value out")
}

func TestAnchorsAndMergeKeysAreUnderstood(t *testing.T) {
	data := `
apiVersion: openslo/v1
kind: SLO
metadata: {name: a}
spec: &spec
  service: chat
  indicator: {metadata: {name: ttft}, spec: {thresholdMetric: {metricSource: {type: opentelemetry, spec: {metric: a_seconds}}}}}
  timeWindow: &month [{duration: 28d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives:
    - &base {op: lte, value: 1, target: 0.9}
    - {<<: *base, value: 2, target: 0.99}
    - {<<: [*base, {displayName: merged, value: 7}], target: 0.999}
`
	c, err := Parse(Source{Name: "f", Data: []byte(data)})
	require.NoError(t, err)
	require.Len(t, c.SLOs, 3)
	assert.Equal(t, Objective{Name: "p99", Op: OpLTE, Value: 2, Target: 0.99}, c.SLOs[1].Objective)
	assert.Equal(t, Objective{Name: "p99.9", DisplayName: "merged", Op: OpLTE, Value: 1, Target: 0.999}, c.SLOs[2].Objective)

	_, err = Parse(Source{Name: "f", Data: []byte(strings.Replace(data, "<<: *base", "<<: [1]", 1))})
	require.ErrorContains(t, err, "f:12: spec.objectives[1]: the merge key << holds a list with 1, a number: merge mappings")
}

func TestEmptyFilesAndDocumentsAreNoProblem(t *testing.T) {
	for _, data := range []string{"", "\n", "# nothing yet\n", "---\n---\n", "null", "[]"} {
		c, err := Parse(Source{Name: "f", Data: []byte(data)})
		require.NoError(t, err, data)
		assert.Empty(t, c.SLOs)
	}
}

// Scenario: a list of documents in one, as OpenSLO's own tools write it. Guarantees: each is read, and a problem's path
// begins with its place in the list.
func TestAListOfDocumentsIsSeveral(t *testing.T) {
	c, err := Parse(Source{Name: "f", Data: []byte(`
- {apiVersion: openslo/v1, kind: Service, metadata: {name: a}}
- {apiVersion: openslo/v1, kind: Service, metadata: {name: b}}
---
apiVersion: openslo/v1
kind: Service
metadata: {name: c}
`)})
	require.NoError(t, err)
	assert.Len(t, c.Services, 3)

	_, err = Parse(Source{Name: "f", Data: []byte("- null\n- {apiVersion: openslo/v1, kind: Service, metadata: {name: A}}\n- [a]\n")})
	require.EqualError(t, err, "f:1: [0]: is null: give it a value or remove it\n"+
		`f:2: [1].metadata.name: "A" is no RFC 1123 name: write up to 63 lower case letters, digits and inner dashes, e.g. chat-ttft`+"\n"+
		"f:3: [2]: is a list: write a mapping (key: value)")
}

func TestATooLargeFileIsAProblem(t *testing.T) {
	_, err := Parse(Source{Name: "f", Data: make([]byte, maxFileSize+1)})
	require.EqualError(t, err, "f:1: is longer than 4194304 bytes: split it")
}

func TestNearMissesAreGuessedAndFarOnesAreNot(t *testing.T) {
	f := func(word, want string) {
		t.Helper()
		assert.Equal(t, want, nearest(word, []string{"budgetingMethod", "op", "all", "any"}), word)
	}
	f("budgetingmethod", "budgetingMethod")
	f("budgettingMetod", "budgetingMethod")
	f("po", "op")
	f("or", "any")
	f("and", "all")
	f("service", "")
	f(strings.Repeat("x", 1000), "")
	f("", "")
}
