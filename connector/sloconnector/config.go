// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-llm/otelcol-llm/connector/sloconnector/internal/judge"
	"github.com/otelcol-llm/otelcol-llm/internal/alertmanager"
	"github.com/otelcol-llm/otelcol-llm/internal/emit"
	"github.com/otelcol-llm/otelcol-llm/internal/frame"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/strict"
	"github.com/otelcol-llm/otelcol-llm/internal/tenant"
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
	// MaxSeriesPerSLO bounds the judged series of one SLO, so that no SLO takes the room of the others. 0 is no bound of
	// its own.
	MaxSeriesPerSLO int `mapstructure:"max_series_per_slo"`
	// MaxRecentSpans is how many spans are remembered, so that one that is sent again does not count twice: at least the
	// last half of it. 0 remembers none.
	MaxRecentSpans int `mapstructure:"max_recent_spans"`
	// TenantFrom are the attributes of the resource that say whose data it is, the first that is set. It is the value of
	// the group-by key tenant.
	TenantFrom []string `mapstructure:"tenant_from"`
	// TrustParts lets count what other slo connectors tell (slo.sli.distribution). It names the group, and so the tenant, that it is
	// of: nobody but they may be able to send it. Without it, it is refused.
	TrustParts bool `mapstructure:"trust_parts"`
	// MaxParts bounds the parts (other slo connectors) that are known by what they tell. What further ones tell counts, and
	// nobody notices when they are away.
	MaxParts int `mapstructure:"max_parts"`
	// PartTTL is how long, in event time, a part may be away before it is forgotten. Until then, windows that are judged without
	// it are marked incomplete.
	PartTTL time.Duration `mapstructure:"part_ttl"`
	// BurnRates put a promise at risk: its error budget is spent too fast. They are for the SLOs that have no alert policies
	// of their own. An empty list has none.
	BurnRates []BurnRate `mapstructure:"burn_rates"`
	// Storage is the id of a storage extension in which the state outlives a restart. Without it, state is in memory.
	Storage *component.ID `mapstructure:"storage"`
	// CheckpointInterval is how often what has changed is written to Storage: the most that a crash loses.
	CheckpointInterval time.Duration `mapstructure:"checkpoint_interval"`
	// Alertmanager is told of violations and burn rates. Nobody is told without it.
	Alertmanager configoptional.Optional[alertmanager.Config] `mapstructure:"alertmanager"`
	// Backfill asks a Prometheus what had happened before, at the first start. Without it, budgets begin unobserved.
	Backfill configoptional.Optional[BackfillConfig] `mapstructure:"backfill"`
	// Metrics switches single metrics of the results on and off.
	Metrics emit.Settings `mapstructure:"metrics"`
	// RefreshInterval is how often results are repeated that have not changed, for backends that forget. Changes
	// are told within a second. 0 never repeats.
	RefreshInterval time.Duration `mapstructure:"refresh_interval"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// BurnRate says that an error budget is spent too fast when over both windows it is spent at least Factor times as fast as it
// may be. The long window says that it matters, the short one that it still goes on.
type BurnRate struct {
	Long     time.Duration `mapstructure:"long"`
	Short    time.Duration `mapstructure:"short"`
	Factor   float64       `mapstructure:"factor"`
	Severity string        `mapstructure:"severity"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// workbook are the burn rates that Google's SRE workbook recommends
// (https://sre.google/workbook/alerting-on-slos/#6-multiwindow-multi-burn-rate-alerts).
func workbook() []BurnRate {
	const day = 24 * time.Hour
	return []BurnRate{
		{Long: time.Hour, Short: 5 * time.Minute, Factor: 14.4, Severity: "page"},
		{Long: 6 * time.Hour, Short: 30 * time.Minute, Factor: 6, Severity: "page"},
		{Long: day, Short: 2 * time.Hour, Factor: 3, Severity: "ticket"},
		{Long: 3 * day, Short: 6 * time.Hour, Factor: 1, Severity: "ticket"},
	}
}

// BackfillConfig says which Prometheus knows what had happened before. The settings of the HTTP client are those of every
// Collector component.
type BackfillConfig struct {
	// ClientConfig has the endpoint, e.g. http://localhost:9090, and the settings for TLS, authentication and headers.
	confighttp.ClientConfig `mapstructure:",squash"`
	// Step is how coarse what is older than three days is asked for; what is younger comes by the hour.
	Step time.Duration `mapstructure:"step"`
	// Deadline is how long the questions may take together. What is not answered by then is not observed.
	Deadline time.Duration `mapstructure:"deadline"`
	// Histograms and Gauges name metrics whose kind their name does not say.
	Histograms []string `mapstructure:"histograms"`
	Gauges     []string `mapstructure:"gauges"`

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
	errs = append(errs, frame.CheckSpans(c.Window, c.Lateness))
	if c.IdleTimeout <= 0 {
		errs = append(errs, fmt.Errorf("idle_timeout: %s must be positive", c.IdleTimeout))
	}
	if c.MaxLag <= 0 {
		errs = append(errs, fmt.Errorf("max_lag: %s must be positive", c.MaxLag))
	}
	for _, limit := range []struct {
		key   string
		value int
	}{{"max_series", c.MaxSeries}, {"max_input_series", c.MaxInputSeries}, {"max_sources", c.MaxSources}, {"max_parts", c.MaxParts}} {
		if limit.value < 1 {
			errs = append(errs, fmt.Errorf("%s: %d must be at least 1", limit.key, limit.value))
		}
	}
	for _, limit := range []struct {
		key   string
		value int
	}{{"max_series_per_slo", c.MaxSeriesPerSLO}, {"max_recent_spans", c.MaxRecentSpans}} {
		if limit.value < 0 {
			errs = append(errs, fmt.Errorf("%s: %d must not be negative", limit.key, limit.value))
		}
	}
	if c.SeriesTTL <= 0 {
		errs = append(errs, fmt.Errorf("series_ttl: %s must be positive", c.SeriesTTL))
	}
	if c.PartTTL <= 0 {
		errs = append(errs, fmt.Errorf("part_ttl: %s must be positive", c.PartTTL))
	}
	if c.RefreshInterval < 0 {
		errs = append(errs, fmt.Errorf("refresh_interval: %s must not be negative", c.RefreshInterval))
	}
	if c.CheckpointInterval < time.Second {
		errs = append(errs, fmt.Errorf("checkpoint_interval: %s must be at least 1s", c.CheckpointInterval))
	}
	if _, err := tenant.NewResolver(c.TenantFrom); err != nil {
		errs = append(errs, fmt.Errorf("tenant_from: %w", err))
	}
	for i := range c.BurnRates {
		errs = append(errs, c.BurnRates[i].validate(fmt.Sprintf("burn_rates[%d]", i)))
	}
	errs = append(errs, c.Metrics.Check(table))
	return errors.Join(errs...)
}

func (r *BurnRate) validate(key string) error {
	var errs []error
	for _, w := range []struct {
		key    string
		length time.Duration
	}{{"long", r.Long}, {"short", r.Short}} {
		if w.length < judge.Tick || w.length%judge.Tick != 0 {
			errs = append(errs, fmt.Errorf("%s::%s: %s is not a whole number of minutes, at least 1m", key, w.key, w.length))
		}
	}
	if r.Short > r.Long {
		errs = append(errs, fmt.Errorf("%s::short: %s is longer than the long window of %s", key, r.Short, r.Long))
	}
	if !(r.Factor > 0) || math.IsInf(r.Factor, 0) {
		errs = append(errs, fmt.Errorf("%s::factor: %g must be above 0, e.g. 14.4", key, r.Factor))
	}
	return errors.Join(errs...)
}

// Unmarshal refuses null values besides what the Collector refuses.
func (c *BackfillConfig) Unmarshal(conf *confmap.Conf) error { return strict.Unmarshal(conf, c) }

func defaultBackfill() BackfillConfig {
	return BackfillConfig{ClientConfig: confighttp.NewDefaultClientConfig(), Step: 24 * time.Hour, Deadline: 5 * time.Minute}
}

// Validate reports every problem at once, each with its key.
func (c *BackfillConfig) Validate() error {
	var errs []error
	if u, err := url.Parse(c.Endpoint); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		errs = append(errs, fmt.Errorf("endpoint: %q is no URL of a Prometheus, e.g. http://localhost:9090", c.Endpoint))
	}
	if c.Step < time.Hour {
		errs = append(errs, fmt.Errorf("step: %s must be at least 1h", c.Step))
	}
	if c.Deadline <= 0 {
		errs = append(errs, fmt.Errorf("deadline: %s must be positive", c.Deadline))
	}
	return errors.Join(errs...)
}
