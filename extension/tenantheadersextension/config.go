// SPDX-License-Identifier: Apache-2.0

package tenantheadersextension

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"golang.org/x/net/http/httpguts"

	"github.com/otelcol-llm/otelcol-llm/internal/strict"
	"github.com/otelcol-llm/otelcol-llm/internal/tenant"
)

// Config is the configuration of the extension.
type Config struct {
	// Header is the header of HTTP requests, and in lower case the metadata of gRPC calls, that names the tenant.
	Header string `mapstructure:"header"`
	// FromMetadata is the key of the client metadata that holds the tenant: metadata_key of tenant_routing.
	FromMetadata string `mapstructure:"from_metadata"`
	// DefaultTenant is who data belongs to that comes without a tenant. Without it, such data is refused.
	DefaultTenant string `mapstructure:"default_tenant"`

	// prevent unkeyed literal initialization
	_ struct{}
}

var _ component.Config = (*Config)(nil)

// Unmarshal refuses null values besides what the Collector refuses.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return strict.Unmarshal(conf, c) }

// Validate names each setting that is wrong and what would be right.
func (c *Config) Validate() error {
	var errs []error
	if !httpguts.ValidHeaderFieldName(c.Header) {
		errs = append(errs, fmt.Errorf("header: %q is no name of a header, such as X-Scope-OrgID", c.Header))
	}
	if !httpguts.ValidHeaderFieldName(c.FromMetadata) {
		errs = append(errs, fmt.Errorf("from_metadata: %q is no key of metadata, such as x-scope-orgid", c.FromMetadata))
	}
	if c.DefaultTenant != "" && !tenant.Valid(c.DefaultTenant) {
		errs = append(errs, fmt.Errorf("default_tenant: %q is no tenant id: at most 150 of a-z A-Z 0-9 !-_.*'(), and not . or .. alone", c.DefaultTenant))
	}
	return errors.Join(errs...)
}
