// SPDX-License-Identifier: Apache-2.0

package driftheatmapprocessor

import (
	"math"
	"slices"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-llm/otelcol-llm/internal/labels"
	"github.com/otelcol-llm/otelcol-llm/internal/twosample"
	"github.com/otelcol-llm/otelcol-llm/processor/driftheatmapprocessor/internal/heat"
)

// dimensions are the keys by which cells are told apart, and the buckets of those that are numbers.
type dimensions struct {
	keys    []string
	buckets map[string]*buckets
}

// buckets are upper boundaries and what the values between them are called.
type buckets struct {
	bounds []float64
	names  []string // one more
}

// newDimensions adds the canary's attribute where it is none of them.
func newDimensions(cfg *Config) dimensions {
	d := dimensions{buckets: map[string]*buckets{}}
	for _, of := range cfg.Dimensions {
		d.keys = append(d.keys, of.Key)
		if len(of.Buckets) > 0 {
			d.buckets[of.Key] = newBuckets(of.Buckets)
		}
	}
	if canary := cfg.Canary.Get(); canary != nil && canary.ChangedAt.IsZero() && !slices.Contains(d.keys, canary.Attribute) {
		d.keys = append(d.keys, canary.Attribute)
	}
	return d
}

// tenant is the dimension that tells tenants apart, "" for none.
func (d *dimensions) tenant(cfg *Config) string {
	for _, key := range []string{labels.Tenant, cfg.TenantFrom[0]} {
		if slices.Contains(d.keys, key) {
			return key
		}
	}
	return ""
}

func newBuckets(bounds []float64) *buckets {
	b := &buckets{bounds: bounds}
	for i, v := range bounds {
		if i == 0 {
			b.names = append(b.names, "<="+short(v))
		} else {
			b.names = append(b.names, short(bounds[i-1])+"-"+short(v))
		}
	}
	b.names = append(b.names, ">"+short(bounds[len(bounds)-1]))
	return b
}

// short is a number as people write it.
func short(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// name is what a number is called, "" for what is none.
func (b *buckets) name(v pcommon.Value) string {
	var x float64
	switch v.Type() {
	case pcommon.ValueTypeInt:
		x = float64(v.Int())
	case pcommon.ValueTypeDouble:
		x = v.Double()
	default:
		parsed, err := strconv.ParseFloat(v.AsString(), 64)
		if err != nil {
			return ""
		}
		x = parsed
	}
	return b.of(x)
}

func (b *buckets) of(x float64) string {
	for i, bound := range b.bounds {
		if x <= bound {
			return b.names[i]
		}
	}
	if math.IsNaN(x) {
		return ""
	}
	return b.names[len(b.bounds)]
}

// text is the value of a dimension.
func (d *dimensions) text(key string, v pcommon.Value) string {
	if b := d.buckets[key]; b != nil {
		return b.name(v)
	}
	return v.AsString()
}

// canary is how cells are compared, nil where they are not.
func (d *dimensions) canary(cfg *Config) *heat.Canary {
	c := cfg.Canary.Get()
	if c == nil {
		return nil
	}
	if !c.ChangedAt.IsZero() {
		return &heat.Canary{Since: c.ChangedAt.UnixNano(), Windows: cfg.ReferenceWindows, Options: c.options()}
	}
	return &heat.Canary{
		Dimension: slices.Index(d.keys, c.Attribute), Reference: c.Baseline, Candidate: c.Candidate, Options: c.options(),
	}
}

func (c *CanaryConfig) options() twosample.Options {
	o := twosample.DefaultOptions()
	o.Alpha, o.MinSamples, o.OnlySignificant = c.Alpha, uint64(max(c.MinSamples, 0)), true
	return o
}
