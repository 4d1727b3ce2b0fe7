// SPDX-License-Identifier: Apache-2.0

package driftheatmapprocessor

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-llm/otelcol-llm/internal/emit"
	"github.com/otelcol-llm/otelcol-llm/internal/frame"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/strict"
	"github.com/otelcol-llm/otelcol-llm/internal/tenant"
)

// Config is the configuration of the drift_heatmap processor.
type Config struct {
	// Catalog is the id of the slo_catalog extension that knows the SLOs.
	Catalog component.ID `mapstructure:"catalog"`
	// Window is the length of the windows, in event time, that are held against each other.
	Window time.Duration `mapstructure:"window"`
	// Dimensions are the attributes by which every SLO is told apart. They are looked up in the point, then the scope, then the
	// resource. An empty list has one cell an SLO.
	Dimensions []Dimension `mapstructure:"dimensions"`
	// Decay is what the weight of a window is multiplied by with every window that passes: how fast what is normal is learned
	// anew. 1 forgets nothing.
	Decay float64 `mapstructure:"decay"`
	// MinSamples is how many values a quantile takes; where there are fewer, a Gamma distribution that fits may answer.
	MinSamples int `mapstructure:"min_samples"`
	// ReferenceWindows is how many windows the frozen baseline of a cell is made of: the first that have an answer and keep the
	// promise.
	ReferenceWindows int `mapstructure:"reference_windows"`
	// ReferenceSince is when the frozen baselines begin anew, as RFC 3339: after a change that was wanted.
	ReferenceSince time.Time `mapstructure:"reference_since"`
	// MaxCells bounds the cells (SLO × dimensions). What comes beyond is one overflow cell an SLO.
	MaxCells int `mapstructure:"max_cells"`
	// CellTTL is how long, in event time, a cell is remembered without input.
	CellTTL time.Duration `mapstructure:"cell_ttl"`
	// Canary compares two versions. Without it, none are compared.
	Canary configoptional.Optional[CanaryConfig] `mapstructure:"canary"`
	// Coupling learns how the throughput of engines hangs together with how much they do at once. Without it, nothing is learned
	// of that.
	Coupling configoptional.Optional[CouplingConfig] `mapstructure:"coupling"`
	// Lateness is how far event time may lag behind the newest of its source before it comes too late for its window. Windows
	// close this much later.
	Lateness time.Duration `mapstructure:"lateness"`
	// IdleTimeout is how long a source may be silent before windows close without it.
	IdleTimeout time.Duration `mapstructure:"idle_timeout"`
	// MaxLag is how far a source may lag behind the fastest before windows close without it.
	MaxLag time.Duration `mapstructure:"max_lag"`
	// MaxInputSeries bounds the number of input series that are remembered. Points of further series are refused.
	MaxInputSeries int `mapstructure:"max_input_series"`
	// MaxSources bounds the number of sources (resources) whose progress is followed one by one.
	MaxSources int `mapstructure:"max_sources"`
	// MaxRecentSpans is how many spans are remembered, so that one that is sent again does not count twice. 0 remembers none.
	MaxRecentSpans int `mapstructure:"max_recent_spans"`
	// SeriesTTL is how long an input series is remembered without points.
	SeriesTTL time.Duration `mapstructure:"series_ttl"`
	// TenantFrom are the attributes of the resource that say whose data it is, the first that is set. It is the value of the
	// dimension tenant.
	TenantFrom []string `mapstructure:"tenant_from"`
	// Storage is the id of a storage extension in which the state outlives a restart. Without it, state is in memory.
	Storage *component.ID `mapstructure:"storage"`
	// CheckpointInterval is how often what has changed is written to Storage: the most that a crash loses.
	CheckpointInterval time.Duration `mapstructure:"checkpoint_interval"`
	// Metrics switches single metrics of the results on and off.
	Metrics emit.Settings `mapstructure:"metrics"`
	// RefreshInterval is how often results are repeated that have not changed, for backends that forget. 0 never repeats.
	RefreshInterval time.Duration `mapstructure:"refresh_interval"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Dimension is an attribute. In a configuration it may be its key alone.
type Dimension struct {
	// Key is the attribute's.
	Key string `mapstructure:"key"`
	// Buckets are upper boundaries, rising, by which numbers become few values; without them each value is one of its own.
	Buckets []float64 `mapstructure:"buckets"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// UnmarshalText takes the key alone.
func (d *Dimension) UnmarshalText(key []byte) error {
	*d = Dimension{Key: string(key)}
	return nil
}

// CanaryConfig says which two versions are compared, or, with ChangedAt, that what is after a change is compared with what was
// before it.
type CanaryConfig struct {
	// Attribute tells the versions apart. It is a dimension, whether or not it stands among them.
	Attribute string `mapstructure:"attribute"`
	// Baseline is the value of the version that is to be replaced, Candidate that of the canary.
	Baseline  string `mapstructure:"baseline"`
	Candidate string `mapstructure:"candidate"`
	// ChangedAt is when something was changed everywhere at once, as RFC 3339: each window after it is compared with the windows
	// before it, of which there are as many as ReferenceWindows at most. Set it before the change.
	ChangedAt time.Time `mapstructure:"changed_at"`
	// Alpha is the level of significance, after the correction for the number of cells that are compared.
	Alpha float64 `mapstructure:"alpha"`
	// MinSamples is how many values each version takes in a window. With fewer nothing passes.
	MinSamples int `mapstructure:"min_samples"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Unmarshal refuses null values besides what the Collector refuses.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return strict.Unmarshal(conf, c) }

// CouplingConfig names the metrics of engines, in OTLP or Prometheus spelling. Those of one engine have the same resource and equal
// attributes.
type CouplingConfig struct {
	// Throughput counts tokens.
	Throughput string `mapstructure:"throughput"`
	// Batch is a gauge of the requests that are worked on at once.
	Batch string `mapstructure:"batch"`
	// Context is a histogram of the lengths of prompts, or a gauge of their mean. Empty does not tell them apart.
	Context string `mapstructure:"context"`
	// CacheHits and CacheQueries count the tokens of prompts that were cached, and all. Empty does not tell them apart.
	CacheHits    string `mapstructure:"cache_hits"`
	CacheQueries string `mapstructure:"cache_queries"`
	// By are attributes by which engines are told apart.
	By []string `mapstructure:"by"`
	// ContextBuckets and HitBuckets are upper boundaries, rising, of the mean length of prompts and of the share that was cached.
	ContextBuckets []float64 `mapstructure:"context_buckets"`
	HitBuckets     []float64 `mapstructure:"hit_buckets"`

	// prevent unkeyed literal initialization
	_ struct{}
}

func defaultCoupling() CouplingConfig {
	return CouplingConfig{
		Throughput: "vllm:generation_tokens", Batch: "vllm:num_requests_running", Context: "vllm:request_prompt_tokens",
		CacheHits: "vllm:prefix_cache_hits", CacheQueries: "vllm:prefix_cache_queries", By: []string{"model_name"},
		ContextBuckets: []float64{1000, 4000, 16000}, HitBuckets: []float64{0.25, 0.5, 0.75},
	}
}

// Unmarshal refuses null values besides what the Collector refuses.
func (c *CouplingConfig) Unmarshal(conf *confmap.Conf) error { return strict.Unmarshal(conf, c) }

// Validate reports every problem at once, each with its key.
func (c *CouplingConfig) Validate() error {
	var errs []error
	if c.Throughput == "" || c.Batch == "" {
		errs = append(errs, errors.New("throughput and batch must each name a metric"))
	}
	if (c.CacheHits == "") != (c.CacheQueries == "") {
		errs = append(errs, errors.New("cache_hits and cache_queries belong together: name both or none"))
	}
	for i, key := range c.By {
		if problem := checkKey(c.By[:i], key); key == "" || problem != "" {
			errs = append(errs, fmt.Errorf("by[%d]: %q is no key to group by: %s", i, key, problem))
		} else if slices.Contains(ofCurves, key) {
			errs = append(errs, fmt.Errorf("by[%d]: %q is an attribute of the results already", i, key))
		}
	}
	return errors.Join(append(errs, rising("context_buckets", c.ContextBuckets), rising("hit_buckets", c.HitBuckets),
		within("context_buckets", c.ContextBuckets, math.Inf(1), "a length"), within("hit_buckets", c.HitBuckets, 1, "a share"))...)
}

// within reports boundaries that nothing would be beyond.
func within(key string, bounds []float64, below float64, what string) error {
	var errs []error
	for i, b := range bounds {
		if b <= 0 || b >= below {
			errs = append(errs, fmt.Errorf("%s[%d]: %g: must be above 0 and below %g, as %s is", key, i, b, below, what))
		}
	}
	return errors.Join(errs...)
}

// ofCurves are attributes of what coupling tells.
var ofCurves = []string{"batch", "context", "cache_hit"}

// rising reports boundaries that do not rise.
func rising(key string, bounds []float64) error {
	var errs []error
	for i, b := range bounds {
		if math.IsNaN(b) || math.IsInf(b, 0) || (i > 0 && b <= bounds[i-1]) {
			errs = append(errs, fmt.Errorf("%s[%d]: %g: boundaries must be finite, and rise", key, i, b))
		}
	}
	return errors.Join(errs...)
}

// Unmarshal refuses null values besides what the Collector refuses.
func (c *CanaryConfig) Unmarshal(conf *confmap.Conf) error { return strict.Unmarshal(conf, c) }

// own are attributes of the explanations, which have no dimensions besides: they would be confused.
var own = []string{"dimension", "value"}

// checkKey says what is wrong with a key by which series are told apart, given those before it; empty when nothing is. Two series that
// become one in Prometheus would overwrite each other.
func checkKey(before []string, key string) string {
	name := label(key)
	same := slices.IndexFunc(before, func(k string) bool { return label(k) == name })
	switch problem := openslo.CheckGroupBy(before, key); {
	case problem != "":
		return problem
	case slices.Contains(ofPrometheus, name) || strings.HasPrefix(name, "__"):
		return fmt.Sprintf("%q is a label that Prometheus writes itself: rename the attribute, or take another, as service.instance.id", key)
	case name == label(componentKey):
		return fmt.Sprintf("%q is an attribute of the results already", key)
	case same >= 0:
		return fmt.Sprintf("%q and %q become one label in Prometheus: keep one", before[same], key)
	}
	return ""
}

// ofPrometheus are the labels by which Prometheus tells apart where series come from.
var ofPrometheus = []string{"instance", "job"}

// label is what Prometheus makes of a key.
func label(key string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, key)
}

// Validate reports every problem at once, each with its key.
func (c *Config) Validate() error {
	var errs []error
	if c.Catalog.Type().String() == "" {
		errs = append(errs, errors.New("catalog: must name an slo_catalog extension"))
	}
	errs = append(errs, frame.CheckSpans(c.Window, c.Lateness))
	var keys []string
	for i := range c.Dimensions {
		errs = append(errs, c.Dimensions[i].validate(fmt.Sprintf("dimensions[%d]", i), keys))
		keys = append(keys, c.Dimensions[i].Key)
	}
	if !(c.Decay > 0 && c.Decay <= 1) {
		errs = append(errs, fmt.Errorf("decay: %g is not in (0, 1]", c.Decay))
	}
	if c.ReferenceWindows < 1 || c.ReferenceWindows > math.MaxUint16 {
		errs = append(errs, fmt.Errorf("reference_windows: %d is not in [1, %d]", c.ReferenceWindows, math.MaxUint16))
	}
	for _, limit := range []struct {
		key   string
		value int
		least int
	}{
		{"min_samples", c.MinSamples, 1}, {"max_cells", c.MaxCells, 1}, {"max_input_series", c.MaxInputSeries, 1},
		{"max_sources", c.MaxSources, 1}, {"max_recent_spans", c.MaxRecentSpans, 0},
	} {
		if limit.value < limit.least {
			errs = append(errs, fmt.Errorf("%s: %d must be at least %d", limit.key, limit.value, limit.least))
		}
	}
	for _, span := range []struct {
		key   string
		value time.Duration
		least time.Duration
	}{
		{"cell_ttl", c.CellTTL, 1}, {"idle_timeout", c.IdleTimeout, 1}, {"max_lag", c.MaxLag, 1},
		{"series_ttl", c.SeriesTTL, 1}, {"refresh_interval", c.RefreshInterval, 0},
	} {
		switch {
		case span.value >= span.least:
		case span.least > 0:
			errs = append(errs, fmt.Errorf("%s: %s must be positive", span.key, span.value))
		default:
			errs = append(errs, fmt.Errorf("%s: %s must not be negative", span.key, span.value))
		}
	}
	if c.CellTTL > 0 && c.CellTTL < c.Window {
		errs = append(errs, fmt.Errorf("cell_ttl: %s must be at least the window, %s", c.CellTTL, c.Window))
	}
	if c.CheckpointInterval < time.Second {
		errs = append(errs, fmt.Errorf("checkpoint_interval: %s must be at least 1s", c.CheckpointInterval))
	}
	if _, err := tenant.NewResolver(c.TenantFrom); err != nil {
		errs = append(errs, fmt.Errorf("tenant_from: %w", err))
	}
	if canary := c.Canary.Get(); canary != nil {
		for _, d := range c.Dimensions {
			if d.Key == canary.Attribute && len(d.Buckets) > 0 {
				errs = append(errs, fmt.Errorf("canary::attribute: %q is a dimension with buckets: versions are no numbers", d.Key))
			}
		}
	}
	errs = append(errs, c.Metrics.Check(table))
	return errors.Join(errs...)
}

func (d *Dimension) validate(at string, before []string) error {
	var errs []error
	if d.Key == "" {
		errs = append(errs, fmt.Errorf("%s: must not be empty", at))
	} else if problem := checkKey(before, d.Key); problem != "" {
		errs = append(errs, fmt.Errorf("%s: %s", at, problem))
	} else if slices.Contains(own, label(d.Key)) {
		errs = append(errs, fmt.Errorf("%s: %q is an attribute of the results already", at, d.Key))
	}
	return errors.Join(append(errs, rising(at+"::buckets", d.Buckets))...)
}

// Validate reports every problem at once, each with its key.
func (c *CanaryConfig) Validate() error {
	var errs []error
	for _, text := range []struct{ key, value string }{{"attribute", c.Attribute}, {"baseline", c.Baseline}, {"candidate", c.Candidate}} {
		switch {
		case text.value == "" && c.ChangedAt.IsZero():
			errs = append(errs, fmt.Errorf("%s: must not be empty, or changed_at must be set instead", text.key))
		case text.value != "" && !c.ChangedAt.IsZero():
			errs = append(errs, fmt.Errorf("%s: is set beside changed_at: set one of them", text.key))
		}
	}
	if c.Attribute != "" {
		if problem := checkKey(nil, c.Attribute); problem != "" {
			errs = append(errs, fmt.Errorf("attribute: %s", problem))
		}
	}
	if c.Baseline != "" && c.Baseline == c.Candidate {
		errs = append(errs, fmt.Errorf("candidate: %q is the baseline", c.Candidate))
	}
	options := c.options()
	if err := options.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("alpha or min_samples: %w", err))
	}
	return errors.Join(errs...)
}
