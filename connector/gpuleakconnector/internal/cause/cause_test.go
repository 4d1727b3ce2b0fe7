// SPDX-License-Identifier: Apache-2.0

package cause

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheFirstRuleThatHoldsDecides(t *testing.T) {
	rules := Builtin()
	f := func(facts Facts, want string) {
		t.Helper()
		r := rules.Of(facts)
		if want == "" {
			assert.Nil(t, r)
			return
		}
		require.NotNil(t, r)
		assert.Equal(t, want, r.Cause)
	}
	f(Facts{Process: Rising, Live: Flat, Device: Rising}, "fragmentation")
	f(Facts{Process: Rising, Live: Rising, Device: Rising}, "allocation_not_freed")
	f(Facts{Process: Rising, Live: Unknown, Device: Rising}, "not_returned")
	f(Facts{Process: Rising, Live: Unknown, Device: Rising, Context: Rising}, "context_not_released")
	f(Facts{Process: Rising, Engine: Rising}, "engine_not_released")
	f(Facts{Process: Rising, Block: Rising}, "block_not_released")
	f(Facts{Process: Rising}, "unknown")
	f(Facts{Unattributed: Rising}, "orphaned_process")
	f(Facts{Process: Flat}, "")
}

// Guarantees: what issue trackers of engines and allocators describe most is named: an engine or a context that is not released (used rises, free
// does not come back), fragmentation (what is live is flat while what is reserved grows), and an orphaned process.
func TestTheUsualCausesAreNamedAndCanBeSeen(t *testing.T) {
	f := func(facts Facts, want, says, verify string) {
		t.Helper()
		r := Builtin().Of(facts)
		require.NotNil(t, r)
		assert.Equal(t, want, r.Cause)
		assert.Contains(t, Explain(r.Text, "71", "GPU-0"), says)
		assert.Contains(t, Explain(r.Verify, "71", "GPU-0"), verify)
	}
	f(Facts{Process: Rising, Device: Rising, Engine: Rising, Context: Flat}, "engine_not_released", "Process 71 makes engines and does not release them", "--pid 71")
	f(Facts{Process: Rising, Device: Rising, Engine: Flat, Context: Rising}, "context_not_released", "makes execution contexts and does not release them", "--pid 71")
	f(Facts{Process: Rising, Device: Rising, Live: Flat}, "fragmentation", "its allocator has cut its memory into pieces", "memory_summary")
	f(Facts{Unattributed: Rising, Device: Rising}, "orphaned_process", "is held by no process that is visible", "--id=GPU-0")
}

func TestRulesOfAFileStandBeforeTheBuiltinOnes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	write := func(text string) {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write(`rules: [{cause: ours, when: {process: rising, live: unknown}, text: "{pid} on {device}", verify: look}]`)
	rules, err := Read(path)
	require.NoError(t, err)
	assert.Len(t, rules, len(Builtin())+1)
	assert.Equal(t, "ours", rules.Of(Facts{Process: Rising}).Cause)
	assert.Equal(t, "fragmentation", rules.Of(Facts{Process: Rising, Live: Flat}).Cause)
	assert.Equal(t, "71 on GPU-0", Explain(rules[0].Text, "71", "GPU-0"))

	f := func(text string, want ...string) {
		t.Helper()
		write(text)
		_, err := Read(path)
		for _, w := range want {
			assert.ErrorContains(t, err, w)
		}
	}
	f(`rules: [{cause: "", when: {}, text: x, verify: y}]`, "rules[0]: cause: must not be empty", "rules[0]: when: must name a fact: one of process, live")
	f(`rules: [{cause: a, when: {gpu: rising, live: up}, text: x, verify: y}]`, `unknown fact "gpu"`, `when: live: "up": write rising, flat or unknown`)
	f(`rules: [{cause: a, wen: {}}]`, "field wen not found")
	f(`rules: [{cause: a, when: {live: [flat]}}]`, "rules.yaml: ", "a rule has cause, when, text and verify")
	f(`rules: [{cause: a, when: {live: flat}, text: "{PID} on {gpu}", verify: "kill {pid}"}]`,
		"rules.yaml: rules[0]: a: text: unknown placeholder {PID}: write {pid} or {device}", "rules[0]: a: text: unknown placeholder {gpu}")
	f(`rules: [{cause: a, when: {live: flat}, text: x, verify: "ps {Pid}"}]`, "rules[0]: a: verify: unknown placeholder {Pid}")
	write(`rules: [{cause: a, when: {live: flat}, text: "{pid}{device}", verify: "echo ${HOME} {pid} | awk '{ print }' | jq '.a | {b: .c}'"}]`)
	_, err = Read(path)
	require.NoError(t, err)
	f("", "rules.yaml: rules: must have at least one rule")
	f("rules:", "rules.yaml: rules: must have at least one rule")
	f(`rules: [{cause: a, when: {live: flat}, text: x, verify: y}, {cause: b, when: {live: flat, process: rising}, text: x, verify: y}]`,
		"rules.yaml: rules[1]: b: never decides, since rules[0], a, holds whenever it does")
	_, err = Read(filepath.Join(t.TempDir(), "none.yaml"))
	assert.ErrorIs(t, err, os.ErrNotExist)
}
