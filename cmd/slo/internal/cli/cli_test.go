// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the goldens in testdata")

// Tests run in cmd/slo, as the README's examples do.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// run runs slo.
func run(t *testing.T, stdin string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	var out, errOut bytes.Buffer
	status = Main(args, strings.NewReader(stdin), &out, &errOut)
	return out.String(), errOut.String(), status
}

// golden holds an output against testdata/NAME.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := "testdata/" + name
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

func TestLintOfFilesThatAreRight(t *testing.T) {
	out, errOut, status := run(t, "", "lint", "testdata/promises.yaml", "builtin:vllm", "builtin:mlperf", "builtin:goodput")
	assert.Equal(t, fine, status)
	assert.Equal(t, "nothing is wrong: 38 objectives and 12 violation policies in 4 files\n", out)
	assert.Empty(t, errOut)
}

// Scenario: what a newcomer gets wrong. Guarantees: all of it is told at once, a line each, with what would be right.
func TestLintTellsANewcomerEverythingAtOnce(t *testing.T) {
	out, errOut, status := run(t, "", "lint", "testdata/mistakes.yaml")
	assert.Equal(t, problems, status)
	assert.Empty(t, errOut)
	golden(t, "mistakes.lint.txt", out)
}

func TestLintInJSONForMachines(t *testing.T) {
	out, errOut, status := run(t, "", "lint", "--output", "json", "testdata/mistakes.yaml")
	assert.Equal(t, problems, status)
	assert.Empty(t, errOut)
	golden(t, "mistakes.lint.json", out)
	var list []map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &list))
	for _, p := range list {
		assert.Len(t, p, 4)
		assert.Equal(t, "testdata/mistakes.yaml", p["file"])
	}
	out, _, status = run(t, "", "lint", "-o", "json", "testdata/promises.yaml")
	assert.Equal(t, fine, status)
	assert.JSONEq(t, "[]", out)
}

// Scenario: a budget begins in a year to come, as with a typing error in a date. Guarantees: it is noted, and is no problem, since it
// may be meant.
func TestLintNotesABudgetThatHasNotBegun(t *testing.T) {
	file := strings.Replace(read(t, "testdata/promises.yaml"), "2026-01-01 00:00:00", "2996-01-01 00:00:00", 1)
	for _, output := range []string{"text", "json"} {
		out, errOut, status := run(t, file, "lint", "-o", output, "-")
		assert.Equal(t, fine, status, out)
		assert.Regexp(t, `^stdin:\d+: note: llm:chat:\S+ has no error budget before 2996-01-01 00:00 CET, when its timeWindow begins\n$`, errOut)
	}
}

func TestTheStandardInputIsAFileAmongOthers(t *testing.T) {
	policy := `apiVersion: otelcol-llm.dev/v1alpha1
kind: ViolationPolicy
metadata: {name: p}
spec: {window: 5m, when: {slo: %s}}
`
	out, _, status := run(t, strings.ReplaceAll(policy, "%s", "chat-ttft"), "lint", "-", "testdata/promises.yaml")
	assert.Equal(t, fine, status, out)
	out, _, status = run(t, strings.ReplaceAll(policy, "%s", "chat-tttf"), "lint", "testdata/promises.yaml", "-")
	assert.Equal(t, problems, status)
	assert.Equal(t, "stdin:4: spec.when.slo: no SLO is named \"chat-tttf\": did you mean chat-ttft?\n", out)
}

// Scenario: six promises as real services make them. Guarantees: what is said of each is what the golden says, which was
// read by a person.
func TestExplainInPlainWords(t *testing.T) {
	out, errOut, status := run(t, "", "explain", "testdata/promises.yaml")
	assert.Equal(t, fine, status)
	assert.Empty(t, errOut)
	golden(t, "promises.explain.txt", out)
}

// Scenario: goodput and token rates from spans and counters, a composite, scores with a range, maintenance. Guarantees: as
// above.
func TestExplainOfRatesCompositesAndMaintenance(t *testing.T) {
	out, errOut, status := run(t, "", "explain", "testdata/goodput.yaml")
	assert.Equal(t, fine, status)
	assert.Empty(t, errOut)
	golden(t, "goodput.explain.txt", out)
}

func TestExplainSaysOfWhatIsNotMeasuredWhy(t *testing.T) {
	out, errOut, status := run(t, "", "explain", "testdata/elsewhere.yaml")
	assert.Equal(t, fine, status)
	assert.Empty(t, errOut)
	golden(t, "elsewhere.explain.txt", out)
}

func TestExplainOneByNameOrID(t *testing.T) {
	whole, _, _ := run(t, "", "explain", "testdata/promises.yaml")
	byName, _, status := run(t, "", "explain", "testdata/promises.yaml", "--slo", "chat-ttft")
	assert.Equal(t, fine, status)
	byID, _, status := run(t, "", "explain", "--slo", "llm:chat:ttft:p95", "testdata/promises.yaml")
	assert.Equal(t, fine, status)
	assert.Equal(t, byName, byID)
	one, cost, _ := strings.Cut(byName, "\nAll together\n")
	assert.Contains(t, whole, one)
	assert.Contains(t, cost, "20 for each value of model_name: 1 × 18 + 2 of slo.violations.")

	_, errOut, status := run(t, "", "explain", "--slo", "ttft", "testdata/promises.yaml")
	assert.Equal(t, misuse, status)
	assert.Equal(t, `slo: explain: no SLO has the name or slo_id "ttft": there are chat-availability, chat-kv-cache, chat-relevance, chat-throughput, chat-tpot, chat-ttft`+"\n", errOut)
}

func TestRulesForPrometheus(t *testing.T) {
	out, errOut, status := run(t, "", "rules", "--interval", "1m", "testdata/promises.yaml")
	assert.Equal(t, fine, status)
	assert.Empty(t, errOut)
	golden(t, "promises.rules.yaml", out)
	_, errs := rulefmt.Parse([]byte(out), false, model.LegacyValidation)
	assert.Empty(t, errs)
}

// Scenario: promises that Prometheus cannot keep. Guarantees: the exit status says so, and so do the standard error and
// the head of the rules.
func TestRulesThatDoNotSayEverything(t *testing.T) {
	out, errOut, status := run(t, "", "rules", "testdata/elsewhere.yaml")
	assert.Equal(t, incomplete, status)
	golden(t, "elsewhere.rules.yaml", out)
	golden(t, "elsewhere.rules.stderr.txt", errOut)
}

func TestWhatAMetricIsCanBeSaid(t *testing.T) {
	out, _, status := run(t, "", "rules", "--histogram", "vllm:kv_cache_usage_perc", "testdata/promises.yaml")
	assert.Equal(t, fine, status)
	assert.Contains(t, out, "vllm:kv_cache_usage_perc_bucket{le=\"0.95\"}")
	f := func(want string, args ...string) {
		t.Helper()
		_, errOut, status := run(t, "", append([]string{"rules", "testdata/promises.yaml"}, args...)...)
		assert.Equal(t, misuse, status)
		assert.Equal(t, want, strings.TrimSpace(errOut))
	}
	f("slo: rules: --gauge kv: no SLO is made of it: there are gen_ai.evaluation.results, gen_ai.server.time_per_output_token, vllm:generation_tokens_total, vllm:kv_cache_usage_perc, vllm:request_success_total, vllm:time_to_first_token_seconds", "--gauge", "kv")
	f("slo: rules: vllm:kv_cache_usage_perc is both --histogram and --gauge: keep one", "--gauge", "vllm:kv_cache_usage_perc", "--histogram", "vllm:kv_cache_usage_perc")
	f("slo: rules: --interval -1m0s is below 0: write e.g. 1m, or leave it out", "--interval", "-1m")
}

func TestWhatNeedsACatalogSaysWhatIsWrongInTheFiles(t *testing.T) {
	lint, _, _ := run(t, "", "lint", "testdata/mistakes.yaml")
	for _, command := range []string{"explain", "rules"} {
		out, errOut, status := run(t, "", command, "testdata/mistakes.yaml")
		assert.Equal(t, problems, status)
		assert.Empty(t, out)
		assert.Equal(t, lint, errOut)
	}
}

func TestAWrongCommandLineIsTold(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		_, errOut, status := run(t, "", args...)
		assert.Equal(t, misuse, status, args)
		assert.Equal(t, want, strings.TrimSpace(errOut))
	}
	f("slo: say what to do: lint, explain, rules or completion")
	f("slo: lint: no PATH: name files, globs or directories, builtin:vllm, or - for the standard input", "lint")
	f(`slo: lint: --output "yaml" is not known: write text or json`, "lint", "-o", "yaml", "testdata/promises.yaml")
	f(`slo: unknown builtin "vlm": known are goodput, mlperf, vllm`, "explain", "builtin:vlm")
	f("slo: unknown flag: --sol", "explain", "--sol", "x", "builtin:vllm")
	f("slo: unknown command \"explian\" for \"slo\"\n\nDid you mean this?\n\texplain", "explian")
	f("slo: completion: say for which shell: bash, zsh, fish or powershell", "completion")
	f(`slo: unknown command "x" for "slo completion"`, "completion", "x")
}

func TestShellsCompleteCommandsAndNames(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		out, _, status := run(t, "", "completion", shell)
		assert.Equal(t, fine, status)
		assert.Contains(t, out, "slo", shell)
		assert.Greater(t, len(out), 1000, shell)
	}
	out, _, _ := run(t, "", "__complete", "explain", "testdata/promises.yaml", "--slo", "")
	assert.Contains(t, out, "chat-ttft\n")
}
