// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"errors"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/contexts/ottldatapoint"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// Index says which SLOs a data point serves. Finding the SLOs of a metric's name costs the same whatever the number of
// SLOs, and so does a point, where conditions compare attributes with texts. It is safe for concurrent use.
type Index struct {
	metrics *Metrics
}

// NewIndex compiles the metric selectors of a catalog. Errors are those of ForMetrics.
func NewIndex(catalog *openslo.Catalog, set component.TelemetrySettings) (*Index, error) {
	m, err := ForMetrics(catalog, set)
	if err != nil {
		return nil, err
	}
	return &Index{metrics: m}, nil
}

// Of returns what decides on the points of a metric, nil for a metric that serves no SLO. Callers remember it by the name.
func (x *Index) Of(name string) *Matcher {
	uses := x.metrics.find(name)
	if len(uses) == 0 {
		return nil
	}
	return newMatcher(uses)
}

// stems are a name and what is left of it without the suffixes that SameMetric passes over: two names can only be the
// same metric when they have a stem in common.
func stems(name string) []string {
	all := []string{name}
	bare := strings.TrimSuffix(name, "_total")
	if bare != name {
		all = append(all, bare)
	}
	// A unit is at most three words: _tokens_per_second.
	for at, words := len(bare), 0; words < 3; words++ {
		at = strings.LastIndexByte(bare[:at], '_')
		if at < 0 {
			break
		}
		if unitSuffixes[bare[at:]] {
			all = append(all, bare[:at])
		}
	}
	return all
}

// Matcher decides which SLOs the points of one metric serve. It is safe for concurrent use.
type Matcher struct {
	always []int // SLOs that take every point
	equals []equals
	ottl   []*Use
}

// equals are the conditions that compare one attribute with texts.
type equals struct {
	attribute
	values map[string][]candidate
}

// candidate is an SLO whose condition holds when what is left of it does.
type candidate struct {
	slo  int
	rest []comparison
}

func newMatcher(uses []*Use) *Matcher {
	m := &Matcher{}
	for _, use := range uses {
		if use.cond == nil {
			m.always = insert(m.always, use.SLO)
		}
	}
	for _, use := range uses {
		if use.cond == nil || slices.Contains(m.always, use.SLO) {
			continue
		}
		all, ok := comparisons(use.condition)
		if !ok {
			m.ottl = append(m.ottl, use)
			continue
		}
		at := slices.IndexFunc(m.equals, func(e equals) bool { return e.attribute == all[0].attribute })
		if at < 0 {
			at = len(m.equals)
			m.equals = append(m.equals, equals{all[0].attribute, map[string][]candidate{}})
		}
		values := m.equals[at].values
		values[all[0].text] = append(values[all[0].text], candidate{use.SLO, all[1:]})
	}
	return m
}

// Match returns the SLOs (indices in Catalog.SLOs, rising, each once) that a data point serves. The result is shared or
// has the memory of into: it must not be written to, and not be kept. A condition that cannot be evaluated does not hold;
// those are the errors.
func Match[P interface{ Attributes() pcommon.Map }](
	ctx context.Context, m *Matcher, into []int, rm pmetric.ResourceMetrics, sm pmetric.ScopeMetrics, metric pmetric.Metric, point P,
) ([]int, error) {
	if len(m.equals) == 0 && len(m.ottl) == 0 {
		return m.always, nil
	}
	slos := into[:0]
	slos = append(slos, m.always...)
	at := place{point.Attributes(), sm, rm}
	for i := range m.equals {
		e := &m.equals[i]
		text, ok := e.of(at)
		if !ok {
			continue
		}
		for _, c := range e.values[text] {
			if at.all(c.rest) {
				slos = insert(slos, c.slo)
			}
		}
	}
	if len(m.ottl) == 0 {
		return slos, nil
	}
	var errs []error
	tc := ottldatapoint.NewTransformContextPtr(rm, sm, metric, point)
	defer tc.Close()
	for _, use := range m.ottl {
		holds, err := use.cond.Eval(ctx, tc)
		if err != nil {
			errs = append(errs, err)
		}
		if holds && err == nil {
			slos = insert(slos, use.SLO)
		}
	}
	return slos, errors.Join(errs...)
}

// insert adds to a rising list what it does not have.
func insert(list []int, v int) []int {
	at, found := slices.BinarySearch(list, v)
	if found {
		return list
	}
	return slices.Insert(list, at, v)
}
