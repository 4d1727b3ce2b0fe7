// SPDX-License-Identifier: Apache-2.0

package distribution

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"github.com/otelcol-llm/otelcol-llm/tests/internal/spawn"
)

const ownModule = "github.com/otelcol-llm/otelcol-llm"

// manifest is builder-config.yaml, as far as these tests look at it.
type manifest struct {
	Dist struct {
		Version string `yaml:"version"`
	} `yaml:"dist"`
	Modules map[string][]module `yaml:",inline"`
}

type module struct {
	GoMod  string `yaml:"gomod"`
	Import string `yaml:"import"`
}

// kinds are the lists of the manifest, by the names that `otelcol-llm components` gives them too.
var kinds = []string{"receivers", "processors", "exporters", "connectors", "extensions", "providers"}

// Guarantees: every module of the manifest has registered a factory in the shipped binary, and nothing else has.
func TestManifestIsWhatTheBinaryRegisters(t *testing.T) {
	want := readManifest(t)
	got := registered(t)
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			var modules []string
			for _, m := range want.Modules[kind] {
				modules = append(modules, m.GoMod)
			}
			slices.Sort(modules)
			var registered []string
			for _, c := range got[kind] {
				registered = append(registered, c.Module)
			}
			slices.Sort(registered)
			assert.Equal(t, modules, registered)
		})
	}
}

// Guarantees: our own components carry the type that their folder and the documentation promise.
func TestOwnComponentsAreRegisteredUnderTheirNames(t *testing.T) {
	want := map[string][]string{}
	for kind, modules := range readManifest(t).Modules {
		for _, m := range modules {
			if m.Import != "" {
				want[kind] = append(want[kind], path.Base(m.Import))
			}
		}
	}
	got := registered(t)
	for kind, folders := range want {
		var names []string
		for _, c := range got[kind] {
			if strings.HasPrefix(c.Module, ownModule+" ") {
				// slo_catalog lives in slocatalogextension, the scheme builtin in builtinprovider.
				names = append(names, strings.ReplaceAll(c.Name+c.Scheme, "_", "")+strings.TrimSuffix(kind, "s"))
			}
		}
		assert.ElementsMatch(t, folders, names, kind)
	}
}

// Scenario: a replace in the manifest raised a dependency for a security fix; a later upgrade of the Collector asks for
// something newer still. Guarantees: the replace does not silently hold the build back.
func TestNoReplaceHoldsADependencyBack(t *testing.T) {
	file := filepath.Join(spawn.Root(t), "otelcol-llm", "go.mod")
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	mod, err := modfile.Parse(file, content, nil)
	require.NoError(t, err)

	selected := map[string]string{}
	for _, r := range mod.Require {
		selected[r.Mod.Path] = r.Mod.Version
	}
	pins := 0
	for _, r := range mod.Replace {
		if r.New.Version == "" { // our own module, from the checkout
			assert.Equal(t, ownModule, r.Old.Path)
			assert.Equal(t, "../", r.New.Path)
			continue
		}
		pins++
		assert.Equal(t, r.Old.Path, r.New.Path, "a fork needs a decision of its own")
		asked, used := selected[r.Old.Path]
		if !assert.True(t, used, "%s is replaced, but nothing needs it any more", r.Old.Path) {
			continue
		}
		assert.Positive(t, semver.Compare(r.New.Version, asked),
			"%s: the replace says %s, the build would select %s by itself; remove the replace", r.Old.Path, r.New.Version, asked)
	}
	assert.Positive(t, pins)
}

// Guarantees: docs/dependencies.md does not claim that something was left out which is in, or the other way round.
func TestLeftOutIsLeftOut(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(spawn.Root(t), "docs", "dependencies.md"))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(content), "\n## Left out of the distribution\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")

	in := map[string]bool{}
	for _, modules := range readManifest(t).Modules {
		for _, m := range modules {
			goMod, _, _ := strings.Cut(m.GoMod, " ")
			in[path.Base(goMod)] = true
		}
	}
	rows := regexp.MustCompile("(?m)^\\| `([a-z0-9]+)`").FindAllStringSubmatch(section, -1)
	assert.NotEmpty(t, rows)
	for _, row := range rows {
		assert.False(t, in[row[1]], "%s is in the manifest", row[1])
	}
}

func readManifest(t *testing.T) manifest {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(spawn.Root(t), "builder-config.yaml"))
	require.NoError(t, err)
	// replaces is a list of strings, the rest lists of modules.
	var all map[string]yaml.Node
	require.NoError(t, yaml.Unmarshal(content, &all))
	m := manifest{Modules: map[string][]module{}}
	dist := all["dist"]
	require.NoError(t, dist.Decode(&m.Dist))
	for _, kind := range kinds {
		node := all[kind]
		var modules []module
		require.NoError(t, node.Decode(&modules), kind)
		require.NotEmpty(t, modules, kind)
		m.Modules[kind] = modules
	}
	return m
}

type registration struct {
	Name   string `yaml:"name"`   // of a component
	Scheme string `yaml:"scheme"` // of a provider
	Module string `yaml:"module"` // as in the manifest: path and version
}

func registered(t *testing.T) map[string][]registration {
	t.Helper()
	out, code := spawn.Run(t, "components")
	require.Zero(t, code, out)
	var all map[string]yaml.Node
	require.NoError(t, yaml.Unmarshal([]byte(out), &all))
	found := map[string][]registration{}
	for _, kind := range kinds {
		node := all[kind]
		var list []registration
		require.NoError(t, node.Decode(&list), kind)
		found[kind] = list
	}
	return found
}
