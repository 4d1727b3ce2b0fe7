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
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// Guarantees: the binary accepts every configuration in docs/gpu.md, and the names there of dcgm-exporter's series are those
// that builtin:dcgm-exporter maps.
func TestTheConfigurationsForGPUsAreValid(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(spawn.Root(t), "docs", "gpu.md"))
	require.NoError(t, err)
	t.Setenv("K8S_NODE_NAME", "node-1") // as the DaemonSet does
	whole, parts, others := 0, 0, 0
	for _, m := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```").FindAllStringSubmatch(string(content), -1) {
		var parsed map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(m[1]), &parsed))
		args := []string{"validate"}
		switch {
		case parsed["kind"] != nil:
			others++
			continue
		case parsed["receivers"] == nil:
			parts++
			args = append(args, "--config", "builtin:dcgm-exporter", "--config", "builtin:all-in-one")
		default:
			whole++
		}
		out, code := spawn.Run(t, append(args, "--config", spawn.WriteConfig(t, m[1]))...)
		assert.Zero(t, code, "%s\n%s", m[1], out)
	}
	assert.Equal(t, []int{5, 2, 1}, []int{whole, parts, others})

	preset, err := os.ReadFile(filepath.Join(spawn.Root(t), "confmap", "provider", "builtinprovider", "configs", "dcgm-exporter.yaml"))
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(content), "## From dcgm-exporter")
	for _, m := range regexp.MustCompile(`include: DCGM_FI_(?:DEV|PROF)_([A-Z0-9_]+), action: insert, new_name: ([a-z_.]+)`).FindAllStringSubmatch(string(preset), -1) {
		assert.Contains(t, section, "`"+m[1]+"`")
		assert.Contains(t, section, "`"+m[2]+"`")
	}
}
