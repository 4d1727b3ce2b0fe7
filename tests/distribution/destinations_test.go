// SPDX-License-Identifier: Apache-2.0

package distribution

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// laidOver are the first lines of examples in the documents: a name, and what the example is laid over.
var laidOver = regexp.MustCompile("(?s)```yaml\n# (\\S+), over ([^\n]+)\n(.*?)```")

// Guarantees: every configuration in the documents about destinations and scaling is valid over what it is said to be laid over.
func TestDocumentedConfigurationsAreValid(t *testing.T) {
	for _, secret := range []string{"PROMETHEUS_PASSWORD", "SCRAPE_PASSWORD", "MIMIR_CREDENTIALS", "LOKI_CREDENTIALS", "TEMPO_TOKEN", "KAFKA_PASSWORD"} {
		t.Setenv(secret, "secret")
	}
	found := 0
	for _, document := range []string{"destinations.md", "scaling.md"} {
		content, err := os.ReadFile(filepath.Join(spawn.Root(t), "docs", document))
		require.NoError(t, err)
		for _, m := range laidOver.FindAllStringSubmatch(string(content), -1) {
			found++
			t.Run(m[1], func(t *testing.T) {
				args := []string{"validate"}
				for config := range strings.FieldsSeq(m[2]) {
					args = append(args, "--config", config)
				}
				out, code := spawn.Run(t, append(args, "--config", spawn.WriteConfig(t, m[3]))...)
				assert.Zero(t, code, out)
			})
		}
	}
	assert.GreaterOrEqual(t, found, 10)
}
