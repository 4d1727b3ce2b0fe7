// SPDX-License-Identifier: Apache-2.0

// Package facts reduces a Prometheus text exposition to what a reader of it may
// rely on: family names, types, label names, enumerated label values and bucket
// bounds. Values and help sentences are left behind, so the facts of a dump can
// be committed where the dump itself, for want of a licence, cannot.
package facts

import (
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"
)

// File is the committed form: where the facts come from, and the facts.
type File struct {
	Source   string   `yaml:"source"`
	Families []Family `yaml:"families"`
}

// Family is what is promised about one metric family.
type Family struct {
	Name string `yaml:"name"`
	Type string `yaml:"type"`
	// Labels are the label names of every series, sorted; le is not among them.
	Labels []string `yaml:"labels,omitempty,flow"`
	// Values are the values of those labels that tell the series of the family
	// apart: an enumeration, as opposed to a model name that could be anything.
	Values map[string][]string `yaml:"values,omitempty"`
	// Buckets are the finite upper bounds, as numbers: le="1" and le="1.0" are
	// the same bound. +Inf goes without saying, and Parse insists on it.
	Buckets []float64 `yaml:"buckets,omitempty,flow"`
}

// Parse reads a text exposition and returns its facts, sorted by name.
// A histogram without +Inf and series of one family with different label names
// are errors: neither can be stated as a fact about the family.
func Parse(r io.Reader) ([]Family, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(r)
	if err != nil {
		return nil, fmt.Errorf("text exposition: %w", err)
	}
	out := make([]Family, 0, len(families))
	for _, mf := range families {
		f, err := fromDTO(mf)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out, nil
}

// Load reads the committed form.
func Load(r io.Reader) (File, error) {
	var f File
	dec := yaml.NewDecoder(r)
	dec.KnownFields(true)
	if err := dec.Decode(&f); err != nil {
		return File{}, fmt.Errorf("facts: %w", err)
	}
	return f, nil
}

// Diff says, in both directions, where got is not what want says. Empty means equal.
func Diff(want, got []Family) []string {
	var out []string
	w, g := byName(want), byName(got)
	for _, f := range want {
		other, ok := g[f.Name]
		if !ok {
			out = append(out, fmt.Sprintf("%s: missing", f.Name))
			continue
		}
		out = append(out, f.diff(other)...)
	}
	for _, f := range got {
		if _, ok := w[f.Name]; !ok {
			out = append(out, fmt.Sprintf("%s: not expected", f.Name))
		}
	}
	sort.Strings(out)
	return out
}

func (f Family) diff(got Family) []string {
	var out []string
	say := func(what string, want, got any) {
		out = append(out, fmt.Sprintf("%s: %s %v, want %v", f.Name, what, got, want))
	}
	if f.Type != got.Type {
		say("type", f.Type, got.Type)
	}
	if !slices.Equal(f.Labels, got.Labels) {
		say("labels", f.Labels, got.Labels)
	}
	if !slices.Equal(f.Buckets, got.Buckets) {
		say("buckets", f.Buckets, got.Buckets)
	}
	for _, label := range sortedKeys(f.Values, got.Values) {
		if !slices.Equal(f.Values[label], got.Values[label]) {
			say("values of "+label, f.Values[label], got.Values[label])
		}
	}
	return out
}

func fromDTO(mf *dto.MetricFamily) (Family, error) {
	f := Family{Name: mf.GetName(), Type: strings.ToLower(mf.GetType().String())}
	values := map[string]map[string]bool{}
	for i, m := range mf.GetMetric() {
		var names []string
		for _, l := range m.GetLabel() {
			names = append(names, l.GetName())
			if values[l.GetName()] == nil {
				values[l.GetName()] = map[string]bool{}
			}
			values[l.GetName()][l.GetValue()] = true
		}
		sort.Strings(names)
		if i == 0 {
			f.Labels = names
		} else if !slices.Equal(f.Labels, names) {
			return Family{}, fmt.Errorf("%s: series with labels %v and %v", f.Name, f.Labels, names)
		}
		if h := m.GetHistogram(); h != nil {
			bounds, err := finiteBounds(h)
			if err != nil {
				return Family{}, fmt.Errorf("%s: %w", f.Name, err)
			}
			f.Buckets = bounds
		}
	}
	for label, seen := range values {
		if len(seen) < 2 {
			continue
		}
		if f.Values == nil {
			f.Values = map[string][]string{}
		}
		f.Values[label] = sortedKeys(seen)
	}
	return f, nil
}

func finiteBounds(h *dto.Histogram) ([]float64, error) {
	var out []float64
	inf := false
	for _, b := range h.GetBucket() {
		if math.IsInf(b.GetUpperBound(), +1) {
			inf = true
			continue
		}
		out = append(out, b.GetUpperBound())
	}
	if !inf {
		return nil, fmt.Errorf("no bucket le=\"+Inf\"")
	}
	sort.Float64s(out)
	return out, nil
}

func byName(fs []Family) map[string]Family {
	m := make(map[string]Family, len(fs))
	for _, f := range fs {
		m[f.Name] = f
	}
	return m
}

func sortedKeys[V any](maps ...map[string]V) []string {
	seen := map[string]bool{}
	var out []string
	for _, m := range maps {
		for k := range m {
			if !seen[k] {
				seen[k] = true
				out = append(out, k)
			}
		}
	}
	sort.Strings(out)
	return out
}
