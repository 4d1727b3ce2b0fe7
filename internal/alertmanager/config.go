// SPDX-License-Identifier: Apache-2.0

package alertmanager

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-llm/otelcol-llm/internal/strict"
)

// Config says where alerts go. The settings of the HTTP client are those of every Collector component.
type Config struct {
	// ClientConfig has the settings for TLS, authentication, headers, timeout and proxy, for all endpoints alike.
	confighttp.ClientConfig `mapstructure:",squash"`
	// Endpoints are the base URLs of Alertmanagers, e.g. http://localhost:9093. Each gets every alert; members of a
	// cluster are listed one by one, as in Prometheus.
	Endpoints []string `mapstructure:"endpoints"`
	// ResendInterval is how often everything is sent again. An alert resolves four times this after it was sent last.
	ResendInterval time.Duration `mapstructure:"resend_interval"`
	// MaxAlerts bounds the number of alerts that are kept, resolved ones included.
	MaxAlerts int `mapstructure:"max_alerts"`
	// ExternalLabels are added to each alert, unless it has such a label itself: cluster, region, …
	ExternalLabels map[string]string `mapstructure:"external_labels"`
	// ConsoleURL is the link of alerts that bring none.
	ConsoleURL string `mapstructure:"console_url"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// DefaultConfig has everything but endpoints.
func DefaultConfig() Config {
	client := confighttp.NewDefaultClientConfig()
	client.Timeout = 10 * time.Second
	return Config{ClientConfig: client, ResendInterval: time.Minute, MaxAlerts: 10_000}
}

// Unmarshal refuses null values and numbers without a unit besides what the Collector refuses.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return strict.Unmarshal(conf, c) }

const path = "/api/v2/alerts"

// Validate reports every problem at once, each with its key.
func (c *Config) Validate() error {
	var errs []error
	if c.Endpoint != "" {
		errs = append(errs, fmt.Errorf("endpoint: there may be several Alertmanagers: write endpoints: [%s]", c.Endpoint))
	} else if len(c.Endpoints) == 0 {
		errs = append(errs, errors.New("endpoints: must name an Alertmanager, e.g. [http://localhost:9093]"))
	}
	for i, base := range c.Endpoints {
		key := fmt.Sprintf("endpoints[%d]", i)
		if u, err := absolute(key, base); err != nil {
			errs = append(errs, err)
		} else if strings.HasSuffix(strings.TrimRight(u.Path, "/"), path) {
			errs = append(errs, fmt.Errorf("%s: %s: leave out %s, it is added", key, u.Redacted(), path))
		} else if slices.Contains(c.Endpoints[:i], base) {
			errs = append(errs, fmt.Errorf("%s: %s is listed before", key, u.Redacted()))
		}
	}
	if c.Timeout <= 0 {
		errs = append(errs, fmt.Errorf("timeout: %s must be positive", c.Timeout))
	}
	if c.Compression.IsCompressed() {
		errs = append(errs, fmt.Errorf("compression: Alertmanager does not read %s: leave it out", c.Compression))
	}
	if c.ResendInterval < time.Second {
		errs = append(errs, fmt.Errorf("resend_interval: %s must be at least 1s", c.ResendInterval))
	}
	if c.MaxAlerts < 1 {
		errs = append(errs, fmt.Errorf("max_alerts: %d must be at least 1", c.MaxAlerts))
	}
	for _, name := range slices.Sorted(maps.Keys(c.ExternalLabels)) {
		if name == "" {
			errs = append(errs, errors.New("external_labels: a name is empty"))
		}
	}
	if c.ConsoleURL != "" {
		if _, err := absolute("console_url", c.ConsoleURL); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// absolute reads a URL; its error does not repeat one that may hold a password.
func absolute(key, text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%s: is no URL that begins with http:// or https:// and a host", key)
	}
	return u, nil
}
