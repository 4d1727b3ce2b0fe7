// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-llm/otelcol-llm/internal/hostname"
	"github.com/otelcol-llm/otelcol-llm/internal/strict"
)

// Config is the configuration of the extension.
type Config struct {
	// ServerConfig says where the page is: endpoint, and tls, auth and the other settings of an HTTP server of the Collector.
	confighttp.ServerConfig `mapstructure:",squash"`
	// QueryURL is the base URL of what answers PromQL: the tsdb exporter, Prometheus, Mimir (…/prometheus) or Thanos Query,
	// without /api/v1.
	QueryURL string `mapstructure:"query_url"`
	// Query is how QueryURL is asked: timeout, tls, auth, headers and the other settings of an HTTP client of the Collector.
	Query confighttp.ClientConfig `mapstructure:"query"`
	// AllowedHosts are the names under which browsers may ask for the page, besides localhost, addresses and the host of
	// endpoint. What asks under another name may be a page of somebody else that had its name resolved to this address.
	AllowedHosts []string `mapstructure:"allowed_hosts"`
	// TraceURL is where a trace is shown; {trace_id} in it is replaced. Empty shows ids without a link.
	TraceURL string `mapstructure:"trace_url"`
	// MaxConcurrentQueries bounds the queries that are passed on at once; further ones wait.
	MaxConcurrentQueries int `mapstructure:"max_concurrent_queries"`
	// MaxResponseBytes bounds an answer that is passed on.
	MaxResponseBytes int64 `mapstructure:"max_response_bytes"`

	_ struct{}
}

func createDefaultConfig() component.Config {
	server := confighttp.NewDefaultServerConfig()
	server.NetAddr.Endpoint = "localhost:8686"
	server.ReadHeaderTimeout = 10 * time.Second
	server.WriteTimeout = time.Minute // more than the query's timeout, so that its error reaches the page
	query := confighttp.NewDefaultClientConfig()
	query.Timeout = 30 * time.Second
	return &Config{
		ServerConfig:         server,
		QueryURL:             "http://localhost:9191",
		Query:                query,
		MaxConcurrentQueries: 16,
		MaxResponseBytes:     64 << 20,
	}
}

// Unmarshal refuses null values besides what the Collector refuses.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return strict.Unmarshal(conf, c) }

var _ component.Config = (*Config)(nil)

// Validate names each setting that is wrong and what would be right.
func (c *Config) Validate() error {
	var errs []error
	if c.NetAddr.Endpoint == "" {
		errs = append(errs, errors.New("endpoint: is empty: write e.g. localhost:8686"))
	}
	if c.CORS.HasValue() {
		errs = append(errs, errors.New("cors: other pages must not ask the console: leave it out"))
	}
	if u, err := absolute("query_url", c.QueryURL); err != nil {
		errs = append(errs, err)
	} else if strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/api/v1") {
		errs = append(errs, errors.New("query_url: leave out /api/v1, it is added"))
	} else if u.RawQuery != "" || u.Fragment != "" {
		errs = append(errs, errors.New("query_url: must end with its path: leave out what follows ? or #"))
	} else if u.User != nil {
		errs = append(errs, errors.New("query_url: names a user: write query::auth or query::headers instead, which are kept secret"))
	}
	errs = append(errs, c.validateQuery()...)
	for i, host := range c.AllowedHosts {
		if err := hostname.Check(host); err != nil {
			errs = append(errs, fmt.Errorf("allowed_hosts[%d]: %w", i, err))
		}
	}
	if c.TraceURL != "" {
		if _, err := absolute("trace_url", strings.ReplaceAll(c.TraceURL, traceID, "0")); err != nil {
			errs = append(errs, err)
		} else if !strings.Contains(c.TraceURL, traceID) {
			errs = append(errs, errors.New("trace_url: has no {trace_id}: write e.g. http://localhost:16686/trace/{trace_id}"))
		}
	}
	if c.MaxConcurrentQueries < 1 {
		errs = append(errs, fmt.Errorf("max_concurrent_queries: %d must be at least 1", c.MaxConcurrentQueries))
	}
	if c.MaxResponseBytes < 1<<10 {
		errs = append(errs, fmt.Errorf("max_response_bytes: %d must be at least 1024", c.MaxResponseBytes))
	}
	return errors.Join(errs...)
}

// traceID is what stands for the id in trace_url.
const traceID = "{trace_id}"

func (c *Config) validateQuery() (errs []error) {
	if c.Query.Endpoint != "" {
		errs = append(errs, errors.New("query::endpoint: write query_url instead"))
	}
	if c.Query.Timeout <= 0 {
		errs = append(errs, fmt.Errorf("query::timeout: %s must be positive", c.Query.Timeout))
	} else if c.WriteTimeout > 0 && c.WriteTimeout <= c.Query.Timeout {
		errs = append(errs, fmt.Errorf("write_timeout: %s must be more than query::timeout, %s", c.WriteTimeout, c.Query.Timeout))
	}
	if c.Query.Compression.IsCompressed() {
		errs = append(errs, errors.New("query::compression: Prometheus reads no compressed queries: leave it out"))
	}
	return errs
}

// absolute reads a URL; its error does not repeat one that may hold a password.
func absolute(key, text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || !slices.Contains([]string{"http", "https"}, u.Scheme) || u.Host == "" {
		return nil, fmt.Errorf("%s: is no URL that begins with http:// or https:// and a host", key)
	}
	return u, nil
}
