// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

var (
	full   = &workload{tenants: 20, models: 10}
	broken = fault{tenant: 3, model: 5, from: time.Hour}
)

func exposed(t *testing.T, tenant int, after time.Duration) (text string, all map[string]*dto.MetricFamily) {
	t.Helper()
	var b bytes.Buffer
	full.expose(&b, tenant, after, broken)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	all, err := parser.TextToMetricFamilies(bytes.NewReader(b.Bytes()))
	require.NoError(t, err)
	return b.String(), all
}

func TestAnEndpointHas950Series(t *testing.T) {
	text, _ := exposed(t, 0, time.Hour)
	series := map[string]bool{}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			name, _, _ := strings.Cut(line, "} ")
			series[name] = true
		}
	}
	assert.Len(t, series, 950)
}

// Guarantees: no counter and no single bucket ever shrinks, not even when the fault begins: a restart would look so.
func TestNothingShrinks(t *testing.T) {
	var before map[string]*dto.MetricFamily
	for after := time.Hour - time.Minute; after < time.Hour+time.Minute; after += 7 * time.Second {
		_, all := exposed(t, broken.tenant, after)
		for name, family := range all {
			for i, m := range family.Metric {
				if before == nil {
					continue
				}
				was := before[name].Metric[i]
				assert.GreaterOrEqual(t, m.GetCounter().GetValue(), was.GetCounter().GetValue(), name)
				var n, n0 uint64
				for b, bucket := range m.GetHistogram().GetBucket() {
					c, c0 := bucket.GetCumulativeCount(), was.GetHistogram().GetBucket()[b].GetCumulativeCount()
					assert.GreaterOrEqual(t, c-n, c0-n0, "%s of %v up to %v after %s", name, m.GetLabel(), bucket.GetUpperBound(), after)
					n, n0 = c, c0
				}
				assert.Equal(t, m.GetHistogram().GetSampleCount(), n)
			}
		}
		before = all
	}
}

// badShare is the share of a promise's events in the minute before a time that were bad.
func badShare(t *testing.T, p promise, tenant int, end time.Duration) float64 {
	t.Helper()
	bad, total := 0.0, 0.0
	for sign, after := range map[float64]time.Duration{-1: end - time.Minute, 1: end} {
		_, all := exposed(t, tenant, after)
		for _, m := range all[p.metric].Metric {
			if label(m, "model_name") != p.model {
				continue
			}
			if p.limit == 0 {
				total += sign * m.GetCounter().GetValue()
				if label(m, "finished_reason") == "error" {
					bad += sign * m.GetCounter().GetValue()
				}
				continue
			}
			n := float64(m.GetHistogram().GetSampleCount())
			total, bad = total+sign*n, bad+sign*n
			found := false
			for _, b := range m.GetHistogram().GetBucket() {
				if b.GetUpperBound() == p.limit {
					bad, found = bad-sign*float64(b.GetCumulativeCount()), true
				}
			}
			require.True(t, found, "%s has no boundary at %v", p.metric, p.limit)
		}
	}
	require.Positive(t, total)
	return bad / total
}

// Guarantees: every promise is kept by a wide margin, but the one that the fault is about, which is missed by a wide one.
func TestTheFaultBreaksOnePromiseOfOneTenant(t *testing.T) {
	for _, p := range promises(full.models) {
		for _, tenant := range []int{2, broken.tenant} {
			share := badShare(t, p, tenant, time.Hour+2*time.Minute)
			if tenant == broken.tenant && p.metric == ttft && p.model == modelName(broken.model) {
				assert.Greater(t, share, 0.9, p.name)
			} else {
				assert.Less(t, share, (1-target)/2, "%s of tenant %d", p.name, tenant)
			}
		}
	}
}

// Guarantees: the Collector and Sloth are told the same promises, and as many of them as the report says.
func TestBothSidesAreToldTheSamePromises(t *testing.T) {
	all := promises(full.models)
	loaded, err := openslo.Parse(openslo.Source{Name: "slo.yaml", Data: []byte(catalog(all, time.Minute))})
	require.NoError(t, err)
	require.Len(t, loaded.SLOs, 50)
	require.Len(t, loaded.Policies, 50)
	sloth := slothSpec(all, "tenant-07")
	assert.Equal(t, 50, strings.Count(sloth, "\n  - name: "))
	byName := map[string]openslo.SLO{}
	for _, slo := range loaded.SLOs {
		byName[slo.Name] = slo
	}
	for _, p := range all {
		slo := byName[p.name]
		assert.Equal(t, p.id(), slo.ID)
		assert.Equal(t, []string{"tenant"}, slo.GroupBy)
		assert.InDelta(t, target, slo.Objective.Target, 0)
		assert.Equal(t, 1, strings.Count(sloth, "\n  - name: "+p.name+"\n"))
		if p.limit != 0 {
			assert.InDelta(t, p.limit, slo.Objective.Value, 0)
			bucket := fmt.Sprintf(`%s_bucket{tenant="tenant-07",model_name="%s",le="%s"}`, p.metric, p.model, boundary(p.limit))
			assert.Equal(t, 1, strings.Count(sloth, bucket), bucket)
		}
	}
}
