// SPDX-License-Identifier: Apache-2.0

package sloschemaprocessor

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/strict"
)

// Config is the configuration of the slo_schema processor.
type Config struct {
	// Catalog is the id of the slo_catalog extension that knows the SLOs.
	Catalog component.ID `mapstructure:"catalog"`
	// OnMultiple says which labels a point has that several SLOs are made of: first (those of the SLO whose slo_id comes
	// first) or ids_only (none). All their ids stand in slo.ids either way.
	OnMultiple OnMultiple `mapstructure:"on_multiple"`
	// OnUnknown says what becomes of a point that belongs to an SLO by its labels, and whose canonical labels cannot be
	// completed: keep (as far as they are known), tag (besides, slo.missing lists those that are not) or drop.
	OnUnknown OnUnknown `mapstructure:"on_unknown"`
	// Dialects are the tools whose series are translated: sloth, pyrra, slo_generator. An empty list translates none.
	Dialects []string `mapstructure:"dialects"`
	// ClassRules say which slo_class an SLO of a dialect has: that of the first rule that matches, else availability.
	ClassRules []ClassRule `mapstructure:"class_rules"`
	// ServiceFrom are the keys under which the service of a Pyrra SLO is looked up, in this order, each in the point, then
	// the scope, then the resource: Pyrra itself has no such label.
	ServiceFrom []string `mapstructure:"service_from"`
	// KeepDialectLabels leaves the labels that were translated (such as sloth_id) beside the canonical ones.
	KeepDialectLabels bool `mapstructure:"keep_dialect_labels"`
	// MaxDialectSLOs bounds the number of SLOs of dialects whose target is remembered. Those beyond have no target, which
	// makes their points unknown.
	MaxDialectSLOs int `mapstructure:"max_dialect_slos"`
	// DialectTTL is how long an SLO of a dialect is remembered of which nothing is heard.
	DialectTTL time.Duration `mapstructure:"dialect_ttl"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// ClassRule gives the SLOs of dialects a class.
type ClassRule struct {
	// SLOID is a regular expression (RE2) that the slo_id has to contain a match of.
	SLOID string `mapstructure:"slo_id"`
	// Class is the slo_class of those SLOs.
	Class string `mapstructure:"class"`
}

// OnMultiple is a value of the setting on_multiple.
type OnMultiple string

// The values of on_multiple.
const (
	First   OnMultiple = "first"
	IDsOnly OnMultiple = "ids_only"
)

// OnUnknown is a value of the setting on_unknown.
type OnUnknown string

// The values of on_unknown.
const (
	Keep OnUnknown = "keep"
	Tag  OnUnknown = "tag"
	Drop OnUnknown = "drop"
)

// Unmarshal refuses null values besides what the Collector refuses.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return strict.Unmarshal(conf, c) }

var classes = []string{
	string(openslo.ClassLatency), string(openslo.ClassAvailability), string(openslo.ClassThroughput),
	string(openslo.ClassQuality), string(openslo.ClassCost), string(openslo.ClassSaturation),
}

// Validate reports every problem at once, each with its key.
func (c *Config) Validate() error {
	var errs []error
	if c.Catalog.Type().String() == "" {
		errs = append(errs, errors.New("catalog: must name an slo_catalog extension"))
	}
	if c.OnMultiple != First && c.OnMultiple != IDsOnly {
		errs = append(errs, fmt.Errorf("on_multiple: %q is not known: write first or ids_only", c.OnMultiple))
	}
	if c.OnUnknown != Keep && c.OnUnknown != Tag && c.OnUnknown != Drop {
		errs = append(errs, fmt.Errorf("on_unknown: %q is not known: write keep, tag or drop", c.OnUnknown))
	}
	for i, name := range c.Dialects {
		switch {
		case !slices.Contains(dialectNames[:], name):
			errs = append(errs, fmt.Errorf("dialects[%d]: %q is not known: write %s", i, name, strings.Join(dialectNames[:], ", ")))
		case slices.Contains(c.Dialects[:i], name):
			errs = append(errs, fmt.Errorf("dialects[%d]: %q stands there twice", i, name))
		}
	}
	for i, rule := range c.ClassRules {
		if rule.SLOID == "" {
			errs = append(errs, fmt.Errorf("class_rules[%d]::slo_id: must not be empty: write .* to match every SLO", i))
		} else if _, err := regexp.Compile(rule.SLOID); err != nil {
			errs = append(errs, fmt.Errorf("class_rules[%d]::slo_id: %q is no regular expression: %w", i, rule.SLOID, err))
		}
		if !slices.Contains(classes, rule.Class) {
			errs = append(errs, fmt.Errorf("class_rules[%d]::class: %q is not known: write %s", i, rule.Class, strings.Join(classes, ", ")))
		}
	}
	for i, key := range c.ServiceFrom {
		if key == "" {
			errs = append(errs, fmt.Errorf("service_from[%d]: must not be empty", i))
		}
	}
	if c.MaxDialectSLOs < 1 {
		errs = append(errs, fmt.Errorf("max_dialect_slos: %d must be at least 1", c.MaxDialectSLOs))
	}
	if c.DialectTTL <= 0 {
		errs = append(errs, fmt.Errorf("dialect_ttl: %s must be positive", c.DialectTTL))
	}
	return errors.Join(errs...)
}
