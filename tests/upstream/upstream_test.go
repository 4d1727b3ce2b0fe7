// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// settled is how long a collector has to stay up after it was ready: some components fail a moment later.
const settled = 500 * time.Millisecond

// Guarantees: with each configuration the binary gets ready, stays up, and ends with 0 on SIGTERM.
// Only what would collide on a shared machine is moved: addresses to free ports of 127.0.0.1, folders to temporary ones.
func TestUpstreamExamplesRunUnchanged(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 10)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Contains(t, string(content), "README.md", "name the source of the example")

			config := moveFolders(t, moveAddresses(t, string(content)))
			c := spawn.Start(t, spawn.Options{
				Configs: append([]string{spawn.WriteConfig(t, config)}, moveDefaults(t, config)...),
			})
			c.WaitReady()
			time.Sleep(settled)
			require.True(t, c.Running(), "it ended after it was ready")
			assert.Zero(t, c.Stop())
			assert.NotContains(t, c.Logs(), "panic:")
		})
	}
}

var local = regexp.MustCompile(`\b(?:0\.0\.0\.0|localhost):\d+\b`)

// moveAddresses gives every address of this machine a free port, the same one for the same address.
func moveAddresses(t *testing.T, config string) string {
	moved := map[string]string{}
	return local.ReplaceAllStringFunc(config, func(address string) string {
		if moved[address] == "" {
			moved[address] = spawn.FreeEndpoint(t)
		}
		return moved[address]
	})
}

// moveFolders puts absolute paths below a temporary folder.
func moveFolders(t *testing.T, config string) string {
	dir := t.TempDir()
	config = strings.ReplaceAll(config, "/var/", dir+"/var/")
	return strings.ReplaceAll(config, "/tmp/", os.TempDir()+"/")
}

// moveDefaults returns configurations that move what listens although the example names no address.
func moveDefaults(t *testing.T, config string) []string {
	// A null, as in `grpc:`, is a component with its defaults, so nodes that decode to nothing count.
	var parsed struct {
		Receivers map[string]struct {
			Protocols map[string]struct {
				Endpoint string `yaml:"endpoint"`
			} `yaml:"protocols"`
		} `yaml:"receivers"`
		Extensions map[string]struct {
			Endpoint string `yaml:"endpoint"`
		} `yaml:"extensions"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(config), &parsed))

	overrides := []string{"yaml:service::telemetry::metrics::level: none"}
	move := func(path string) {
		overrides = append(overrides, fmt.Sprintf("yaml:%s: %s", path, spawn.FreeEndpoint(t)))
	}
	for receiver, settings := range parsed.Receivers {
		for protocol, at := range settings.Protocols {
			if strings.HasPrefix(receiver, "otlp") && at.Endpoint == "" {
				move("receivers::" + receiver + "::protocols::" + protocol + "::endpoint")
			}
		}
	}
	for extension, at := range parsed.Extensions {
		if strings.HasPrefix(extension, "health_check") && at.Endpoint == "" {
			move("extensions::" + extension + "::endpoint")
		}
	}
	return overrides
}
