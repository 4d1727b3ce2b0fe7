// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/otelcol-llm/otelcol-llm/internal/strict"
	"github.com/otelcol-llm/otelcol-llm/internal/tenant"
)

// Config is the configuration of the tenant_routing connector.
type Config struct {
	// TenantFrom says what tells the tenant, the first that is set: attributes of the resource; point:KEY is an attribute of
	// the point, span or record, auth:KEY what an authenticator of the receiver found out, metadata:KEY a header that the
	// client sent, which counts only where an authenticator says who it is.
	TenantFrom []string `mapstructure:"tenant_from"`
	// TrustMetadata lets headers count whoever sent them: behind an authenticator that lets clients in and does not say who they
	// are, or a proxy that sets the header, and that nobody else can reach.
	TrustMetadata bool `mapstructure:"trust_metadata"`
	// TrustTenant lets the resource attribute tenant decide, which an earlier hop has set. Without it, what the attribute says
	// is what a client claims, and is overwritten.
	TrustTenant bool `mapstructure:"trust_tenant"`
	// Mapping makes ids of tenants of what TenantFrom finds.
	Mapping MappingConfig `mapstructure:"mapping"`
	// OnUnknown says what becomes of data without a tenant, or of one whose id backends would not take.
	OnUnknown OnUnknown `mapstructure:"on_unknown"`
	// DefaultTenant gets them with on_unknown: default.
	DefaultTenant string `mapstructure:"default_tenant"`
	// MaxTenants bounds how many tenants are known at once. The data of others goes to OverflowTenant.
	MaxTenants int `mapstructure:"max_tenants"`
	// OverflowTenant gets the data of tenants beyond MaxTenants.
	OverflowTenant string `mapstructure:"overflow_tenant"`
	// TenantTTL is how long a tenant without data is remembered. One whose queue is not empty stays.
	TenantTTL time.Duration `mapstructure:"tenant_ttl"`
	// DefaultPipelines are where the data of tenants goes on. Without them it is each pipeline that has this connector as
	// receiver and that no group names.
	DefaultPipelines Pipelines `mapstructure:"default_pipelines"`
	// Groups are tenants with pipelines or limits of their own. The first that names a tenant has it.
	Groups []Group `mapstructure:"groups"`
	// Limits are those of every tenant, for each signal.
	Limits Limits `mapstructure:"limits"`
	// OnExcess says what becomes of a request of which nothing is taken because its tenants are over their limits or their
	// queues are full. Where something of it is taken, the rest is dropped.
	OnExcess OnExcess `mapstructure:"on_excess"`
	// MetadataKey is the key of the client metadata that holds the tenant for what comes after, such as tenant_headers.
	MetadataKey string `mapstructure:"metadata_key"`
	// KeepMetadata are keys of the client's metadata that go on. The others do not.
	KeepMetadata []string `mapstructure:"keep_metadata"`
	// Queue is the queue of each tenant, for each signal and pipeline: that of exporterhelper. Without one (enabled: false)
	// the sender waits, and hears of what fails.
	Queue configoptional.Optional[exporterhelper.QueueBatchConfig] `mapstructure:"sending_queue"`
	// Retry is how a tenant's queue tries again: that of exporterhelper. It has no say without a queue.
	Retry configretry.BackOffConfig `mapstructure:"retry_on_failure"`
	// RetryServerErrors is for how long is tried again what a destination answered with an error of its own, such as HTTP 500,
	// which OTLP calls final. 0 drops it at once.
	RetryServerErrors time.Duration `mapstructure:"retry_server_errors"`
	// DrainTimeout is how long queues in memory may take to be sent at shutdown. What is left then is lost; what lies in a
	// storage stays there.
	DrainTimeout time.Duration `mapstructure:"drain_timeout"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// OnUnknown is a policy for data whose tenant is not known.
type OnUnknown string

const (
	// ToDefault sends it to the default tenant.
	ToDefault OnUnknown = "default"
	// Reject answers the client that it must not send it again.
	Reject OnUnknown = "reject"
	// Drop takes it, and counts it.
	Drop OnUnknown = "drop"
)

// OnExcess is a policy for what tenants send beyond their limits or their queues.
type OnExcess string

const (
	// RefuseExcess tells the client to send it again.
	RefuseExcess OnExcess = "refuse"
	// DropExcess takes it, and counts it: who sends is not a client of one tenant, and others would wait behind it.
	DropExcess OnExcess = "drop"
)

// MappingConfig makes tenant ids of names. The table comes first, the template is for names that do not stand there.
type MappingConfig struct {
	// Template is the id, with {tenant} for the name. Without it, only names in the table are known.
	Template string `mapstructure:"template"`
	// Table is a YAML file of names and tenant ids.
	Table string `mapstructure:"table"`
	// ReloadInterval is how often it is looked whether the table has changed. 0 never looks.
	ReloadInterval time.Duration `mapstructure:"reload_interval"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Pipelines are where data goes on, by signal. With several of a signal, each gets everything.
type Pipelines struct {
	Metrics []pipeline.ID `mapstructure:"metrics"`
	Logs    []pipeline.ID `mapstructure:"logs"`
	Traces  []pipeline.ID `mapstructure:"traces"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Group is tenants with pipelines or limits of their own.
type Group struct {
	// Name is what people call it.
	Name string `mapstructure:"name"`
	// Tenants are ids, or patterns: * stands for any text.
	Tenants []string `mapstructure:"tenants"`
	// Pipelines are where their data goes on. A signal without one goes where it goes by default.
	Pipelines Pipelines `mapstructure:"pipelines"`
	// Limits are those of each of these tenants, instead of the connector's. Without them, those hold.
	Limits configoptional.Optional[Limits] `mapstructure:"limits"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Limits bound what one tenant may send of one signal. 0 is no limit.
type Limits struct {
	// ItemsPerSecond are data points, log records or spans.
	ItemsPerSecond float64 `mapstructure:"items_per_second"`
	// BytesPerSecond are bytes of OTLP, uncompressed.
	BytesPerSecond float64 `mapstructure:"bytes_per_second"`
	// ActiveSeries are series of metrics in the last ten to twenty minutes. Points of further ones are dropped.
	ActiveSeries int `mapstructure:"active_series"`
	// Burst is for how long a tenant that was silent may have saved up. In a group, 0 is the connector's.
	Burst time.Duration `mapstructure:"burst"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Unmarshal refuses null values besides what the Collector refuses.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return strict.Unmarshal(conf, c) }

// of are the pipelines of a signal.
func (p *Pipelines) of(signal pipeline.Signal) []pipeline.ID {
	switch signal {
	case pipeline.SignalMetrics:
		return p.Metrics
	case pipeline.SignalLogs:
		return p.Logs
	default:
		return p.Traces
	}
}

// Validate reports every problem at once, each with its key.
func (c *Config) Validate() error {
	var errs []error
	if from, err := newSource(c.TenantFrom); err != nil {
		errs = append(errs, fmt.Errorf("tenant_from: %w", err))
	} else if c.TrustMetadata && !slices.ContainsFunc(from.request, func(k requestKey) bool { return k.metadata }) {
		errs = append(errs, fmt.Errorf("trust_metadata: nothing in tenant_from is a header, such as %sx-org", ofMetadata))
	}
	switch c.OnUnknown {
	case ToDefault, Reject, Drop:
	default:
		errs = append(errs, fmt.Errorf("on_unknown: %q is none of %s, %s, %s", c.OnUnknown, ToDefault, Reject, Drop))
	}
	switch c.OnExcess {
	case RefuseExcess, DropExcess:
	default:
		errs = append(errs, fmt.Errorf("on_excess: %q is none of %s, %s", c.OnExcess, RefuseExcess, DropExcess))
	}
	for _, id := range []struct{ key, value string }{{"default_tenant", c.DefaultTenant}, {"overflow_tenant", c.OverflowTenant}} {
		if !tenant.Valid(id.value) {
			errs = append(errs, fmt.Errorf("%s: %q is no tenant id: at most 150 of a-z A-Z 0-9 !-_.*'(), and not . or .. alone", id.key, id.value))
		}
	}
	if c.MaxTenants < 1 {
		errs = append(errs, fmt.Errorf("max_tenants: %d must be at least 1", c.MaxTenants))
	}
	if c.TenantTTL <= 0 {
		errs = append(errs, fmt.Errorf("tenant_ttl: %s must be positive", c.TenantTTL))
	}
	for _, span := range []struct {
		key   string
		value time.Duration
	}{{"retry_server_errors", c.RetryServerErrors}, {"drain_timeout", c.DrainTimeout}} {
		if span.value < 0 {
			errs = append(errs, fmt.Errorf("%s: %s must not be negative", span.key, span.value))
		}
	}
	if c.Limits.Burst == 0 {
		errs = append(errs, errors.New("limits::burst: must be at least 1s"))
	}
	if q := c.Queue.Get(); q != nil && (q.BlockOnOverflow || q.WaitForResult) {
		errs = append(errs, errors.New("sending_queue: with block_on_overflow or wait_for_result, one tenant would hold up the data of others that came with it: leave them off"))
	}
	errs = append(errs, c.validateMetadata(), c.DefaultPipelines.validate("default_pipelines"))
	for i := range c.Groups {
		errs = append(errs, c.Groups[i].validate(fmt.Sprintf("groups[%d]", i), c.Groups[:i]))
	}
	return errors.Join(errs...)
}

// validateMetadata checks the keys of the metadata. They are compared as the Collector does, without regard to case.
func (c *Config) validateMetadata() error {
	var errs []error
	if !isKey(c.MetadataKey) {
		errs = append(errs, fmt.Errorf("metadata_key: %q is no key of metadata, such as x-scope-orgid", c.MetadataKey))
	}
	for i, key := range c.KeepMetadata {
		same := func(other string) bool { return strings.EqualFold(key, other) }
		switch {
		case !isKey(key):
			errs = append(errs, fmt.Errorf("keep_metadata[%d]: %q is no key of metadata", i, key))
		case same(c.MetadataKey):
			errs = append(errs, fmt.Errorf("keep_metadata[%d]: %q is metadata_key, which holds the tenant and not what a client says", i, key))
		case slices.ContainsFunc(c.KeepMetadata[:i], same):
			errs = append(errs, fmt.Errorf("keep_metadata[%d]: %q stands twice", i, key))
		}
	}
	return errors.Join(errs...)
}

func isKey(key string) bool { return key != "" && !strings.ContainsAny(key, " \t\r\n:") }

// Validate reports every problem at once, each with its key.
func (c *MappingConfig) Validate() error {
	var errs []error
	switch {
	case c.Template == "" && c.Table == "":
		errs = append(errs, errors.New("template: is empty and there is no table, so no tenant is known: write {tenant} for the name as it is"))
	case c.Template != "" && strings.Count(c.Template, placeholder) != 1:
		errs = append(errs, fmt.Errorf("template: %q must have %s once", c.Template, placeholder))
	case c.Template != "" && !tenant.Valid(strings.ReplaceAll(c.Template, placeholder, "a")):
		errs = append(errs, fmt.Errorf("template: %q makes no tenant ids: they have only a-z A-Z 0-9 !-_.*'()", c.Template))
	}
	if data, err := os.ReadFile(c.Table); err == nil { // that it is not there, the start tells: it may be checked elsewhere
		if _, err := parseTable(c.Table, data); err != nil {
			errs = append(errs, fmt.Errorf("table: %w", err))
		}
	}
	if c.ReloadInterval < 0 {
		errs = append(errs, fmt.Errorf("reload_interval: %s is negative: write e.g. 10s, or 0 to never reload", c.ReloadInterval))
	}
	return errors.Join(errs...)
}

func (p *Pipelines) validate(key string) error {
	var errs []error
	for _, signal := range []pipeline.Signal{pipeline.SignalMetrics, pipeline.SignalLogs, pipeline.SignalTraces} {
		ids := p.of(signal)
		for i, id := range ids {
			switch {
			case id.Signal() != signal:
				errs = append(errs, fmt.Errorf("%s::%s[%d]: %q is no pipeline of %s", key, signal, i, id, signal))
			case slices.Contains(ids[:i], id):
				errs = append(errs, fmt.Errorf("%s::%s[%d]: %q stands twice", key, signal, i, id))
			}
		}
	}
	return errors.Join(errs...)
}

func (g *Group) validate(key string, before []Group) error {
	var errs []error
	if g.Name == "" {
		errs = append(errs, fmt.Errorf("%s::name: must not be empty", key))
	} else if slices.ContainsFunc(before, func(other Group) bool { return other.Name == g.Name }) {
		errs = append(errs, fmt.Errorf("%s::name: %q stands twice", key, g.Name))
	}
	if len(g.Tenants) == 0 {
		errs = append(errs, fmt.Errorf("%s::tenants: must name a tenant", key))
	}
	for i, pattern := range g.Tenants {
		_, err := path.Match(pattern, "")
		switch {
		case err != nil || pattern == "":
			errs = append(errs, fmt.Errorf("%s::tenants[%d]: %q is neither a tenant id nor a pattern such as team-*", key, i, pattern))
		case !possible(pattern):
			errs = append(errs, fmt.Errorf("%s::tenants[%d]: no tenant can be called %q: ids are at most 150 of a-z A-Z 0-9 !-_.*'()", key, i, pattern))
		case slices.Contains(g.Tenants[:i], pattern):
			errs = append(errs, fmt.Errorf("%s::tenants[%d]: %q stands twice", key, i, pattern))
		}
		for j := range before {
			if by, ok := before[j].names(pattern); ok {
				errs = append(errs, fmt.Errorf("%s::tenants[%d]: %q is in group %s already%s", key, i, pattern, before[j].Name, by))
			}
		}
	}
	return errors.Join(append(errs, g.Pipelines.validate(key+"::pipelines"))...)
}

// names reports whether a group has a tenant, or the same pattern, and by which pattern where it is another.
func (g *Group) names(tenant string) (by string, ok bool) {
	for _, pattern := range g.Tenants {
		if pattern == tenant {
			return "", true
		}
		if ok, err := path.Match(pattern, tenant); ok && err == nil && !strings.ContainsAny(tenant, wildcards) {
			return fmt.Sprintf(", by %q", pattern), true
		}
	}
	return "", false
}

// wildcards make a pattern of a name.
const wildcards = `*?[]\^`

// possible reports whether an id could be what a pattern says.
func possible(pattern string) bool {
	if !strings.ContainsAny(pattern, wildcards) {
		return tenant.Valid(pattern)
	}
	rest := strings.Map(func(c rune) rune {
		if strings.ContainsRune(wildcards, c) {
			return -1
		}
		return c
	}, pattern)
	return rest == "" || tenant.Valid("a"+rest)
}

// Validate reports every problem at once, each with its key.
func (l *Limits) Validate() error {
	var errs []error
	for _, limit := range []struct {
		key   string
		value float64
	}{{"items_per_second", l.ItemsPerSecond}, {"bytes_per_second", l.BytesPerSecond}, {"active_series", float64(l.ActiveSeries)}} {
		if !(limit.value >= 0) {
			errs = append(errs, fmt.Errorf("%s: %g must not be negative; 0 is no limit", limit.key, limit.value))
		}
	}
	if l.Burst != 0 && l.Burst < time.Second {
		errs = append(errs, fmt.Errorf("burst: %s must be at least 1s", l.Burst))
	}
	return errors.Join(errs...)
}
