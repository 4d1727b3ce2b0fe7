// SPDX-License-Identifier: Apache-2.0

package tsdbexporter

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/common/model"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-llm/otelcol-llm/internal/hostname"
	"github.com/otelcol-llm/otelcol-llm/internal/strict"
)

// Config is the configuration of the tsdb exporter.
type Config struct {
	// HTTP is the server of the Prometheus HTTP API: endpoint, TLS, authentication, CORS and so on.
	HTTP confighttp.ServerConfig `mapstructure:",squash"`
	// AllowedHosts are further names under which the API may be called. A server on localhost is called by no other name
	// than that, unless it stands here; any other server by every name, unless there are some here.
	AllowedHosts []string `mapstructure:"allowed_hosts"`
	// Storage says what is kept, and where.
	Storage `mapstructure:",squash"`
	// Query limits what questions may cost.
	Query Query `mapstructure:"query"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Storage says what is kept, and where.
type Storage struct {
	// Directory holds the database. It is made when it is missing, and belongs to one exporter alone. A relative path
	// begins at the Collector's working directory.
	Directory string `mapstructure:"directory"`
	// Retention is how long samples are kept, in Prometheus's spelling (15d, 12h). Older ones are refused.
	Retention model.Duration `mapstructure:"retention"`
	// MaxBytes is how large the directory may become before the oldest data goes, even before its retention has passed. 0
	// has no limit.
	MaxBytes int64 `mapstructure:"max_bytes"`
	// MinFreeBytes is how much of the disk has to stay free. With less, data is refused, and senders try again. 0 keeps only
	// what the database itself needs.
	MinFreeBytes int64 `mapstructure:"min_free_bytes"`
	// OutOfOrderWindow is how far a sample may lie behind the newest one of all. 0 refuses what is older than the newest one
	// of its series.
	OutOfOrderWindow time.Duration `mapstructure:"out_of_order_window"`
	// MaxSeries is how many series may be written to at a time; new ones beyond are refused. A series stops counting one to
	// three hours after its last sample.
	MaxSeries int `mapstructure:"max_series"`
	// MaxExemplars is how many exemplars are kept, the newest of all, in memory. 0 keeps none.
	MaxExemplars int `mapstructure:"max_exemplars"`
	// MaxDeltaSeries is how many series of delta temporality are added up at a time; new ones beyond are refused.
	MaxDeltaSeries int `mapstructure:"max_delta_series"`
	// DeltaIdleTimeout is how long the sum of a series is remembered of which nothing is heard. It then begins anew, which
	// PromQL knows as a counter reset.
	DeltaIdleTimeout time.Duration `mapstructure:"delta_idle_timeout"`
	// PromoteResourceAttributes are the resource attributes that become labels of every series; the others are found in
	// target_info.
	PromoteResourceAttributes []string `mapstructure:"promote_resource_attributes"`
}

// Query limits what questions may cost.
type Query struct {
	// Timeout ends a query, and a request that waits for its turn.
	Timeout time.Duration `mapstructure:"timeout"`
	// MaxSamples is how many samples a query may hold in memory, 16 bytes each. All queries together hold twice that at most:
	// each has an equal share first, and those for which that is too little get all of it, one at a time.
	MaxSamples int `mapstructure:"max_samples"`
	// MaxLength is how many bytes the text of a query or of a selector may have. The time to read one grows with the square of it.
	MaxLength int `mapstructure:"max_length"`
	// MaxResults is how many series, labels or values of a label are listed. When there are more, a warning says so.
	MaxResults int `mapstructure:"max_results"`
	// MaxConcurrent is how many requests are answered at a time; others wait.
	MaxConcurrent int `mapstructure:"max_concurrent"`
	// Lookback is how old the newest sample of a series may be for the series to be there.
	Lookback time.Duration `mapstructure:"lookback"`
}

// Unmarshal refuses null values besides what the Collector refuses.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return strict.Unmarshal(conf, c) }

var _ component.Config = (*Config)(nil)

// shortest is the shortest retention: the database deletes blocks, and none is shorter.
const shortest = 2 * time.Hour

// Validate reports every problem at once, each with its key.
func (c *Config) Validate() error {
	var errs []error
	wrong := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	wrong(c.HTTP.NetAddr.Endpoint == "", "endpoint: is empty: write localhost:9191")
	wrong(c.HTTP.WriteTimeout > 0 && c.HTTP.WriteTimeout <= c.Query.Timeout,
		"write_timeout: %s must be longer than query::timeout, which is %s, or 0", c.HTTP.WriteTimeout, c.Query.Timeout)
	wrong(c.Directory == "", "directory: is empty: write where the database is to be")
	wrong(time.Duration(c.Retention) < shortest, "retention: %s must be at least 2h: write e.g. 15d", c.Retention)
	wrong(c.MaxBytes < 0, "max_bytes: %d must not be negative: 0 has no limit", c.MaxBytes)
	wrong(c.MinFreeBytes < 0, "min_free_bytes: %d must not be negative: 0 keeps only what the database itself needs", c.MinFreeBytes)
	wrong(c.OutOfOrderWindow < 0, "out_of_order_window: %s must not be negative", c.OutOfOrderWindow)
	wrong(c.OutOfOrderWindow > 0 && c.OutOfOrderWindow < time.Second, "out_of_order_window: %s is below a second: write e.g. 1h", c.OutOfOrderWindow)
	wrong(c.OutOfOrderWindow > time.Duration(c.Retention), "out_of_order_window: %s must not be longer than retention, which is %s", c.OutOfOrderWindow, c.Retention)
	wrong(c.MaxSeries < 1, "max_series: %d must be at least 1", c.MaxSeries)
	wrong(c.MaxExemplars < 0, "max_exemplars: %d must not be negative: 0 keeps none", c.MaxExemplars)
	wrong(c.MaxDeltaSeries < 1, "max_delta_series: %d must be at least 1", c.MaxDeltaSeries)
	wrong(c.DeltaIdleTimeout < time.Second, "delta_idle_timeout: %s is below a second: write e.g. 1h", c.DeltaIdleTimeout)
	for i, key := range c.PromoteResourceAttributes {
		wrong(key == "", "promote_resource_attributes[%d]: must not be empty", i)
	}
	for i, host := range c.AllowedHosts {
		if err := hostname.Check(host); err != nil {
			errs = append(errs, fmt.Errorf("allowed_hosts[%d]: %w", i, err))
		}
	}
	return errors.Join(append(errs, c.Query.validate())...)
}

func (q *Query) validate() error {
	var errs []error
	if q.Timeout <= 0 {
		errs = append(errs, fmt.Errorf("query::timeout: %s must be positive", q.Timeout))
	}
	if q.MaxSamples < 1 {
		errs = append(errs, fmt.Errorf("query::max_samples: %d must be at least 1", q.MaxSamples))
	}
	if q.MaxLength < 1 {
		errs = append(errs, fmt.Errorf("query::max_length: %d must be at least 1", q.MaxLength))
	}
	if q.MaxResults < 1 {
		errs = append(errs, fmt.Errorf("query::max_results: %d must be at least 1", q.MaxResults))
	}
	if q.MaxConcurrent < 1 {
		errs = append(errs, fmt.Errorf("query::max_concurrent: %d must be at least 1", q.MaxConcurrent))
	}
	if q.Lookback <= 0 {
		errs = append(errs, fmt.Errorf("query::lookback: %s must be positive", q.Lookback))
	}
	return errors.Join(errs...)
}
