// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/strict"
)

// Config is the configuration of the slo connector.
type Config struct {
	// Catalog is the id of the slo_catalog extension that knows the SLOs.
	Catalog component.ID `mapstructure:"catalog"`
	// GroupBy are attribute keys by which every SLO is judged apart, besides those that its own file names.
	// Keys are looked up in the point, then the scope, then the resource.
	GroupBy []string `mapstructure:"group_by"`
	// Window is the evaluation window of an SLO that no ViolationPolicy looks at; the others are evaluated over
	// the shortest window of their policies.
	Window time.Duration `mapstructure:"window"`
	// Lateness is how far event time may lag behind the newest of its source before it comes too late for its
	// window. Windows close this much later.
	Lateness time.Duration `mapstructure:"lateness"`
	// IdleTimeout is how long a source may be silent before windows close without it.
	IdleTimeout time.Duration `mapstructure:"idle_timeout"`
	// MaxLag is how far a source may lag behind the fastest before windows close without it.
	MaxLag time.Duration `mapstructure:"max_lag"`
	// MaxSeries bounds the number of judged series (SLO × group). What comes beyond is judged together, as one
	// overflow series an SLO.
	MaxSeries int `mapstructure:"max_series"`
	// MaxInputSeries bounds the number of input series that are remembered. Points of further series are refused.
	MaxInputSeries int `mapstructure:"max_input_series"`
	// MaxSources bounds the number of sources (resources) whose progress is followed one by one.
	MaxSources int `mapstructure:"max_sources"`
	// SeriesTTL is how long a series is remembered without input.
	SeriesTTL time.Duration `mapstructure:"series_ttl"`
	// RefreshInterval is how often results are repeated that have not changed, for backends that forget. Changes
	// are told within a second. 0 never repeats.
	RefreshInterval time.Duration `mapstructure:"refresh_interval"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Unmarshal refuses null values besides what the Collector refuses.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return strict.Unmarshal(conf, c) }

// Validate reports every problem at once, each with its key.
func (c *Config) Validate() error {
	var errs []error
	if c.Catalog.Type().String() == "" {
		errs = append(errs, errors.New("catalog: must name an slo_catalog extension"))
	}
	for i, key := range c.GroupBy {
		if key == "" {
			errs = append(errs, fmt.Errorf("group_by[%d]: must not be empty", i))
		} else if problem := openslo.CheckGroupBy(c.GroupBy[:i], key); problem != "" {
			errs = append(errs, fmt.Errorf("group_by[%d]: %s", i, problem))
		}
	}
	if c.Window < time.Second || c.Window%time.Second != 0 {
		errs = append(errs, fmt.Errorf("window: %s is not a whole number of seconds, at least 1s", c.Window))
	}
	if c.Lateness < 0 {
		errs = append(errs, fmt.Errorf("lateness: %s must not be negative", c.Lateness))
	}
	if c.IdleTimeout <= 0 {
		errs = append(errs, fmt.Errorf("idle_timeout: %s must be positive", c.IdleTimeout))
	}
	if c.MaxLag <= 0 {
		errs = append(errs, fmt.Errorf("max_lag: %s must be positive", c.MaxLag))
	}
	for _, limit := range []struct {
		key   string
		value int
	}{{"max_series", c.MaxSeries}, {"max_input_series", c.MaxInputSeries}, {"max_sources", c.MaxSources}} {
		if limit.value < 1 {
			errs = append(errs, fmt.Errorf("%s: %d must be at least 1", limit.key, limit.value))
		}
	}
	if c.SeriesTTL <= 0 {
		errs = append(errs, fmt.Errorf("series_ttl: %s must be positive", c.SeriesTTL))
	}
	if c.RefreshInterval < 0 {
		errs = append(errs, fmt.Errorf("refresh_interval: %s must not be negative", c.RefreshInterval))
	}
	return errors.Join(errs...)
}
