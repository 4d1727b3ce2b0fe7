// SPDX-License-Identifier: Apache-2.0

package gpuleakconnector

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-llm/otelcol-llm/connector/gpuleakconnector/internal/cause"
	"github.com/otelcol-llm/otelcol-llm/internal/emit"
	"github.com/otelcol-llm/otelcol-llm/internal/strict"
	"github.com/otelcol-llm/otelcol-llm/internal/tenant"
	"github.com/otelcol-llm/otelcol-llm/internal/trend"
)

// Config is the configuration of the gpu_leak connector.
type Config struct {
	// Catalog is the id of the slo_catalog extension whose promises a leak is held against. Without it, none are.
	Catalog *component.ID `mapstructure:"catalog"`
	// MinDuration is how long memory must have grown before that is a leak, unless nothing is left before.
	MinDuration time.Duration `mapstructure:"min_duration"`
	// MinRise is the least growth that matters, as a share of the memory in use.
	MinRise float64 `mapstructure:"min_rise"`
	// Rules is a file of rules that name causes. They stand before those that come with the connector.
	Rules string `mapstructure:"rules"`
	// Traffic names the metrics of engines.
	Traffic TrafficConfig `mapstructure:"traffic"`
	// Objects names the log events and spans in which applications say what they make and release.
	Objects ObjectsConfig `mapstructure:"objects"`
	// Lateness is how far event time may lag behind the newest of its source before it comes too late. Verdicts come this much later.
	Lateness time.Duration `mapstructure:"lateness"`
	// IdleTimeout is how long a source may be silent before verdicts come without it.
	IdleTimeout time.Duration `mapstructure:"idle_timeout"`
	// MaxLag is how far a source may lag behind the fastest before verdicts come without it.
	MaxLag time.Duration `mapstructure:"max_lag"`
	// MaxProcesses bounds the processes, and the devices, that are followed. Points of further ones are refused.
	MaxProcesses int `mapstructure:"max_processes"`
	// MaxInputSeries bounds the series of counters that are remembered. Points of further ones are refused.
	MaxInputSeries int `mapstructure:"max_input_series"`
	// MaxSources bounds the number of sources (resources) whose progress is followed one by one.
	MaxSources int `mapstructure:"max_sources"`
	// ProcessTTL is how long, in event time, a process is remembered of which nothing is heard: then it has ended.
	ProcessTTL time.Duration `mapstructure:"process_ttl"`
	// TenantFrom are the attributes that say whose data it is, and that stay on the resource of results.
	TenantFrom []string `mapstructure:"tenant_from"`
	// Storage is the id of a storage extension in which the state outlives a restart. Without it, state is in memory.
	Storage *component.ID `mapstructure:"storage"`
	// CheckpointInterval is how often the state is written to Storage: the most that a crash loses.
	CheckpointInterval time.Duration `mapstructure:"checkpoint_interval"`
	// Guard is the id of a gpu_guard extension that is told when a leak opens and closes. Without it, nobody is.
	Guard *component.ID `mapstructure:"guard"`
	// Metrics switches single metrics of the results on and off.
	Metrics emit.Settings `mapstructure:"metrics"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// TrafficConfig names metrics, in OTLP or Prometheus spelling.
type TrafficConfig struct {
	// Running are gauges of the requests that are worked on.
	Running []string `mapstructure:"running"`
	// Cache are gauges of how full the KV cache is.
	Cache []string `mapstructure:"cache"`
	// Served are counters of requests that are finished.
	Served []string `mapstructure:"served"`
	// Relation are attributes by which traffic that names no process, container, pod or device is that of the only process which has the
	// same ones. Empty relates none.
	Relation []string `mapstructure:"relation"`

	// prevent unkeyed literal initialization
	_ struct{}
}

func defaultTraffic() TrafficConfig {
	return TrafficConfig{
		Running:  []string{"vllm:num_requests_running", "sglang:num_running_reqs", "trtllm_num_requests_running"},
		Cache:    []string{"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage", "trtllm_kv_cache_utilization"},
		Served:   []string{"vllm:request_success", "sglang:num_requests", "trtllm_request_success"},
		Relation: []string{"host.name"},
	}
}

// ObjectsConfig names log events, spans and span events.
type ObjectsConfig struct {
	// Created and Destroyed are their names.
	Created   []string `mapstructure:"created"`
	Destroyed []string `mapstructure:"destroyed"`
	// Attribute says what was created or destroyed: engine, context or block.
	Attribute string `mapstructure:"attribute"`

	// prevent unkeyed literal initialization
	_ struct{}
}

func defaultObjects() ObjectsConfig {
	return ObjectsConfig{Created: []string{"gpu.memory.object.created"}, Destroyed: []string{"gpu.memory.object.destroyed"}, Attribute: "gpu.memory.object"}
}

// Unmarshal refuses null values besides what the Collector refuses.
func (c *ObjectsConfig) Unmarshal(conf *confmap.Conf) error { return strict.Unmarshal(conf, c) }

// Unmarshal refuses null values besides what the Collector refuses.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return strict.Unmarshal(conf, c) }

// Unmarshal refuses null values besides what the Collector refuses.
func (c *TrafficConfig) Unmarshal(conf *confmap.Conf) error { return strict.Unmarshal(conf, c) }

// trend are the options of the verdicts.
func (c *Config) trend() trend.Options {
	o := trend.OptionsFor(c.MinDuration)
	o.MinRise = c.MinRise
	return o
}

// Validate reports every problem at once, each with its key.
func (c *Config) Validate() error {
	var errs []error
	if err := c.trend().Validate(); err != nil {
		errs = append(errs, fmt.Errorf("min_duration, min_rise: %w", err))
	}
	if c.Rules != "" {
		if _, err := cause.Read(c.Rules); err != nil {
			errs = append(errs, fmt.Errorf("rules: %w", err))
		}
	}
	if c.Objects.Attribute == "" && len(c.Objects.Created) > 0 {
		errs = append(errs, errors.New("objects::attribute: must not be empty: it says what was created"))
	}
	if slices.Contains(c.Traffic.Relation, "") {
		errs = append(errs, errors.New("traffic::relation: an attribute must not be empty: write one such as host.name"))
	}
	for _, name := range c.Objects.Created {
		if slices.Contains(c.Objects.Destroyed, name) {
			errs = append(errs, fmt.Errorf("objects: %q stands in created and in destroyed: keep one", name))
		}
	}
	for _, limit := range []struct {
		key   string
		value int
	}{{"max_processes", c.MaxProcesses}, {"max_input_series", c.MaxInputSeries}, {"max_sources", c.MaxSources}} {
		if limit.value < 1 {
			errs = append(errs, fmt.Errorf("%s: %d must be at least 1", limit.key, limit.value))
		}
	}
	for _, span := range []struct {
		key          string
		value, least time.Duration
	}{
		{"lateness", c.Lateness, 0}, {"idle_timeout", c.IdleTimeout, 1}, {"max_lag", c.MaxLag, 1}, {"process_ttl", c.ProcessTTL, time.Second},
		{"checkpoint_interval", c.CheckpointInterval, time.Second},
	} {
		if span.value < span.least {
			errs = append(errs, fmt.Errorf("%s: %s must be at least %s", span.key, span.value, span.least))
		}
	}
	if _, err := tenant.NewResolver(c.TenantFrom); err != nil {
		errs = append(errs, fmt.Errorf("tenant_from: %w", err))
	}
	return errors.Join(append(errs, c.Metrics.Check(table))...)
}
