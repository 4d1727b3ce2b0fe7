// SPDX-License-Identifier: Apache-2.0

package builtinprovider

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/confmap"
	"go.uber.org/zap"
)

const (
	schemeName = "builtin"
	configsDir = "configs"
	extension  = ".yaml"

	// hostname is what the machine calls itself: a shell knows it as HOSTNAME, but seldom hands that on.
	hostname = "hostname"
)

//go:embed configs/*.yaml
var embedded embed.FS

type provider struct {
	logger  *zap.Logger
	configs fs.FS
}

// NewFactory returns the factory of the provider for the scheme "builtin".
func NewFactory() confmap.ProviderFactory {
	return confmap.NewProviderFactory(func(set confmap.ProviderSettings) confmap.Provider {
		logger := set.Logger
		if logger == nil {
			logger = zap.NewNop()
		}
		return &provider{logger: logger, configs: embedded}
	})
}

// Names returns the names of the embedded configurations in alphabetical order.
func Names() []string { return names(embedded) }

// Retrieve returns the configuration that the URI names, or the name of the host, which is a value and no configuration. Neither
// ever changes, so the watcher is not used.
func (p *provider) Retrieve(_ context.Context, uri string, _ confmap.WatcherFunc) (*confmap.Retrieved, error) {
	name, ok := strings.CutPrefix(uri, schemeName+":")
	if !ok {
		return nil, fmt.Errorf("%q is not supported by the %q provider", uri, schemeName)
	}
	if name == hostname {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("%s: %w: set HOSTNAME", uri, err)
		}
		return confmap.NewRetrieved(host)
	}
	// A name is looked up in the list, never joined to a path unseen: "../x" is just unknown.
	known := names(p.configs)
	if !slices.Contains(known, name) {
		return nil, fmt.Errorf("%q is not a built-in configuration; known: %s:%s",
			uri, schemeName, strings.Join(known, ", "+schemeName+":"))
	}
	content, err := fs.ReadFile(p.configs, path.Join(configsDir, name+extension))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", uri, err)
	}
	p.logger.Info("using a built-in configuration; a later --config overrides it", zap.String("config", uri))
	return confmap.NewRetrievedFromYAML(content)
}

// Scheme returns "builtin".
func (*provider) Scheme() string { return schemeName }

// Shutdown has nothing to release.
func (*provider) Shutdown(context.Context) error { return nil }

func names(configs fs.FS) []string {
	files, err := fs.Glob(configs, configsDir+"/*"+extension)
	if err != nil { // only for a malformed pattern, which this one is not
		panic(err)
	}
	found := make([]string, 0, len(files))
	for _, file := range files {
		found = append(found, strings.TrimSuffix(path.Base(file), extension))
	}
	slices.Sort(found)
	return found
}
