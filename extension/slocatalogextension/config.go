// SPDX-License-Identifier: Apache-2.0

package slocatalogextension

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-llm/otelcol-llm/extension/slocatalogextension/samples"
	"github.com/otelcol-llm/otelcol-llm/internal/strict"
)

// Config is the configuration of the extension.
type Config struct {
	// Paths say where the SLO files are. Each is a file, a glob, a directory (every *.yaml and *.yml in it and
	// its subdirectories, except names that begin with a dot) or builtin:NAME for a sample that comes with the
	// extension. Relative paths begin at the Collector's working directory. At least one is required.
	Paths []string `mapstructure:"paths"`
	// ReloadInterval is how often it is looked whether a file has changed, to read them all again. 0 never looks.
	ReloadInterval time.Duration `mapstructure:"reload_interval"`

	_ struct{}
}

// Unmarshal refuses null values besides what the Collector refuses.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return strict.Unmarshal(conf, c) }

var _ component.Config = (*Config)(nil)

// Validate names each setting that is wrong and what would be right.
func (c *Config) Validate() error {
	var errs []error
	if len(c.Paths) == 0 {
		errs = append(errs, errors.New("paths: is empty: list files, globs or directories with SLO files, or "+samples.Scheme+"vllm"))
	}
	if c.ReloadInterval < 0 {
		errs = append(errs, fmt.Errorf("reload_interval: %s is negative: write e.g. 10s, or 0 to never reload", c.ReloadInterval))
	}
	for i, path := range c.Paths {
		if strings.TrimSpace(path) == "" {
			errs = append(errs, fmt.Errorf("paths[%d]: is empty: write a file, glob or directory, or remove it", i))
		} else if _, err := samples.Check(path); err != nil {
			errs = append(errs, fmt.Errorf("paths[%d]: %w", i, err))
		}
	}
	return errors.Join(errs...)
}
