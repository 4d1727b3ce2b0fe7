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

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

const ownModule = "github.com/otelcol-llm/otelcol-llm"

// module is one entry of the manifest.
type module struct {
	GoMod  string `yaml:"gomod"`
	Import string `yaml:"import"`
}

// kinds are the lists of the manifest, by the names that `otelcol-llm components` gives them too.
var kinds = []string{"receivers", "processors", "exporters", "connectors", "extensions", "providers", "converters"}

// unlisted are modules that `otelcol-llm components` leaves out at v0.149.0: it takes a factory that also answers to a
// former name for the former name itself. With each stand its two names.
var unlisted = map[string][]string{
	"filelogreceiver":        {"file_log", "filelog"},
	"k8sattributesprocessor": {"k8s_attributes", "k8sattributes"},
	"otlpexporter":           {"otlp_grpc", "otlp"},
	"otlphttpexporter":       {"otlp_http", "otlphttp"},
}

// Guarantees: every module of the manifest has registered a factory in the shipped binary, and nothing else has.
func TestManifestIsWhatTheBinaryRegisters(t *testing.T) {
	want := readManifest(t)
	got := registered(t)
	known := knownTypes(t)
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			var modules, names []string
			for _, c := range got[kind] {
				modules = append(modules, c.Module)
				names = append(names, c.Name)
			}
			for _, m := range want[kind] {
				goMod, _, _ := strings.Cut(m.GoMod, " ")
				if former, ok := unlisted[path.Base(goMod)]; ok && !slices.Contains(modules, m.GoMod) {
					modules = append(modules, m.GoMod)
					names = append(names, former...)
				}
			}
			assert.ElementsMatch(t, goMods(want[kind]), modules)
			if kind != "providers" && kind != "converters" {
				assert.ElementsMatch(t, known[kind], names)
			}
		})
	}
}

// Guarantees: our own components carry the type that their folder and the documentation promise.
func TestOwnComponentsAreRegisteredUnderTheirNames(t *testing.T) {
	want := map[string][]string{}
	for kind, modules := range readManifest(t) {
		for _, m := range modules {
			if m.Import != "" {
				want[kind] = append(want[kind], path.Base(m.Import))
			}
		}
	}
	got := registered(t)
	delete(want, "converters") // they have no name
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

// heldBack are modules that a replace keeps below what the build would select, each with the reason.
var heldBack = map[string]string{
	"go.opentelemetry.io/otel/log": "the Collector v0.149.0 and otelzap do not compile with the log API of v0.22.0",
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
		if heldBack[r.Old.Path] != "" {
			assert.Negative(t, semver.Compare(r.New.Version, asked), "%s is no longer held back: drop it here", r.Old.Path)
			continue
		}
		assert.GreaterOrEqual(t, semver.Compare(r.New.Version, asked), 0,
			"%s: the replace says %s, the build would select %s by itself; remove the replace", r.Old.Path, r.New.Version, asked)
	}
	assert.Positive(t, pins)
}

// readManifest returns the modules in builder-config.yaml by kind.
func readManifest(t *testing.T) map[string][]module {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(spawn.Root(t), "builder-config.yaml"))
	require.NoError(t, err)
	found := map[string][]module{}
	decode(t, content, func(kind string, node yaml.Node) {
		var modules []module
		require.NoError(t, node.Decode(&modules), kind)
		found[kind] = modules
	})
	return found
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
	found := map[string][]registration{}
	decode(t, []byte(out), func(kind string, node yaml.Node) {
		var list []registration
		require.NoError(t, node.Decode(&list), kind)
		found[kind] = list
	})
	return found
}

// knownTypes returns every type that a configuration may name, by kind: the binary lists them when one is unknown.
func knownTypes(t *testing.T) map[string][]string {
	t.Helper()
	out, code := spawn.Run(t, "validate", "--config", spawn.WriteConfig(t, `
receivers: {unknown: {}}
processors: {unknown: {}}
exporters: {unknown: {}}
connectors: {unknown: {}}
extensions: {unknown: {}}
service: {pipelines: {traces: {receivers: [unknown], exporters: [unknown]}}}
`))
	require.NotZero(t, code, out)
	known := map[string][]string{}
	for _, m := range regexp.MustCompile(`'(\w+)' unknown type: .*valid values: \[(.*)\]`).FindAllStringSubmatch(out, -1) {
		known[m[1]] = strings.Fields(m[2])
	}
	require.Len(t, known, 5, out)
	return known
}

func goMods(modules []module) []string {
	var all []string
	for _, m := range modules {
		all = append(all, m.GoMod)
	}
	return all
}

// decode calls with the list of each kind in a YAML document.
func decode(t *testing.T, document []byte, with func(kind string, list yaml.Node)) {
	t.Helper()
	var all map[string]yaml.Node
	require.NoError(t, yaml.Unmarshal(document, &all))
	for _, kind := range kinds {
		require.Contains(t, all, kind)
		with(kind, all[kind])
	}
}
