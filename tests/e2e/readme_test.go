// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

func readme(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(spawn.Root(t), "README.md"))
	require.NoError(t, err)
	return string(data)
}

// Guarantees: the SLO file in the README is one that the catalog accepts, and says what its comments say.
func TestTheREADMEsPromiseIsValid(t *testing.T) {
	parallel(t)
	_, block, found := strings.Cut(readme(t), "```yaml\n")
	require.True(t, found)
	block, _, _ = strings.Cut(block, "```")
	catalog, err := openslo.Parse(openslo.Source{Name: "README.md", Data: []byte(block)})
	require.NoError(t, err)
	require.Len(t, catalog.SLOs, 1)
	slo := catalog.SLOs[0]
	assert.Equal(t, "llm:chat:ttft:p95", slo.ID)
	assert.Equal(t, "0.7500", slo.Target())
	assert.Equal(t, "seconds", slo.Unit)
	assert.Equal(t, []string{"service.namespace", "cloud.region"}, slo.GroupBy)
	assert.Len(t, catalog.Policies, 1)
}

// Guarantees: every path that the documents link to exists.
func TestTheDocumentsLinkToWhatExists(t *testing.T) {
	parallel(t)
	root := spawn.Root(t)
	out, err := exec.Command("git", "-C", root, "ls-files", "*.md").Output()
	require.NoError(t, err)
	links := 0
	for file := range strings.FieldsSeq(string(out)) {
		data, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		for _, part := range strings.Split(string(data), "](")[1:] {
			link, _, _ := strings.Cut(part, ")")
			link, _, _ = strings.Cut(link, "#")
			if link == "" || strings.Contains(link, "://") {
				continue
			}
			links++
			_, err := os.Stat(filepath.Join(root, filepath.Dir(file), link))
			assert.NoError(t, err, "%s links to %s", file, link)
		}
	}
	assert.Positive(t, links)
}

// Scenario: what the README tells to do beside an engine: two simulated ones are scraped by builtin:all-in-one, with the
// variables that it names, and ports moved so that tests do not collide.
// Guarantees: their promises are on the Prometheus endpoint, with the canonical labels, and the console
// gets the same answer from the database.
func TestAllInOneJudgesTheEnginesItIsPointedAt(t *testing.T) {
	parallel(t)
	engines := []string{spawn.FreeEndpoint(t), spawn.FreeEndpoint(t)}
	for i, endpoint := range engines {
		startEngine(t, endpoint, i+1)
	}
	c := startOnALaptop(t, t.TempDir(), strings.Join(engines, ","))

	var text string
	require.Eventually(t, func() bool {
		resp, err := http.Get(c.prometheus)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		text = string(body)
		for _, name := range []string{"slo_sli_events_total{", "slo_objective{", "slo_state{", "vllm:time_to_first_token_seconds_bucket{"} {
			if !strings.Contains(text, name) {
				return false
			}
		}
		return true
	}, patience, 500*time.Millisecond, "%s", &text)

	all := families(t, strings.NewReader(text))
	for _, name := range []string{"slo_sli_events_total", "slo_objective", "slo_state"} {
		require.NotEmpty(t, all[name].GetMetric(), name)
		for _, m := range all[name].GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			for _, key := range []string{"slo_id", "service", "slo_class", "target", "unit"} {
				assert.NotEmpty(t, labels[key], "%s: %v", name, labels)
			}
			assert.Equal(t, "llmsim", labels["model_name"], "judged apart for each model")
		}
	}
	// The page finds what the Prometheus endpoint shows.
	for _, name := range []string{"slo_sli_events_total", "slo_objective", "slo_state", "vllm:time_to_first_token_seconds_bucket"} {
		assert.Eventually(t, func() bool { return len(c.ask(name, time.Now())) > 0 }, patience, 100*time.Millisecond, name)
	}
	assert.Equal(t, 0, c.Stop())
}
