// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pipeline"
	"pgregory.net/rapid"

	"github.com/otelcol-llm/otelcol-llm/connector/tenantroutingconnector/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/attrs/attrstest"
	"github.com/otelcol-llm/otelcol-llm/internal/tenant"
)

// drawn is a resource of a batch: what its items are, in two scopes.
type drawn struct {
	attrs  map[string]string
	scopes [2][]drawnItem
}

type drawnItem struct {
	id       int
	customer string
	kind     int // of metric
}

// arrived is where items came out, by their ids: the tenant of the metadata, and that of the resource.
type arrived struct {
	mu    sync.Mutex
	at    map[int][]string
	fails func() bool
}

var errNotNow = fmt.Errorf("not now")

func (a *arrived) note(ctx context.Context, resource pcommon.Map, item pcommon.Map) {
	id, _ := item.Get("id")
	said := []string{}
	for k, v := range resource.All() {
		if k == "tenant" {
			said = append(said, v.Str())
		}
	}
	a.at[int(id.Int())] = append(a.at[int(id.Int())], fmt.Sprintf("%s %s", said, client.FromContext(ctx).Metadata.Get("x-scope-orgid")))
}

// world is a connector of one signal, between drawn batches and what arrives.
type world struct {
	component.Component
	send func(context.Context, []drawn) error
}

// worlds make the connector of each signal.
var worlds = map[string]func(t require.TestingT, cfg *Config, a *arrived) world{
	"metrics": func(t require.TestingT, cfg *Config, a *arrived) world {
		sink, err := consumer.NewMetrics(func(ctx context.Context, md pmetric.Metrics) error {
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.fails() {
				return errNotNow
			}
			for _, rm := range md.ResourceMetrics().All() {
				eachPoint(rm, func(item, _ pcommon.Map) bool {
					a.note(ctx, rm.Resource().Attributes(), item)
					return true
				})
			}
			return nil
		})
		require.NoError(t, err)
		c, err := NewFactory().CreateMetricsToMetrics(context.Background(), connectortest.NewNopSettings(metadata.Type), cfg,
			connector.NewMetricsRouter(map[pipeline.ID]consumer.Metrics{toTenants: sink}))
		require.NoError(t, err)
		return world{c, func(ctx context.Context, batch []drawn) error {
			md := pmetric.NewMetrics()
			for _, res := range batch {
				rm := md.ResourceMetrics().AppendEmpty()
				putAll(rm.Resource().Attributes(), res.attrs)
				for _, items := range res.scopes {
					sm := rm.ScopeMetrics().AppendEmpty()
					for _, item := range items {
						addPoint(sm, item).PutInt("id", int64(item.id))
					}
				}
			}
			return c.ConsumeMetrics(ctx, md)
		}}
	},
	"logs": func(t require.TestingT, cfg *Config, a *arrived) world {
		sink, err := consumer.NewLogs(func(ctx context.Context, ld plog.Logs) error {
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.fails() {
				return errNotNow
			}
			for _, rl := range ld.ResourceLogs().All() {
				logsShape.each(rl, func(item, _ pcommon.Map) bool {
					a.note(ctx, rl.Resource().Attributes(), item)
					return true
				})
			}
			return nil
		})
		require.NoError(t, err)
		c, err := NewFactory().CreateLogsToLogs(context.Background(), connectortest.NewNopSettings(metadata.Type), cfg,
			connector.NewLogsRouter(map[pipeline.ID]consumer.Logs{pipeline.NewID(pipeline.SignalLogs): sink}))
		require.NoError(t, err)
		return world{c, func(ctx context.Context, batch []drawn) error {
			ld := plog.NewLogs()
			for _, res := range batch {
				rl := ld.ResourceLogs().AppendEmpty()
				putAll(rl.Resource().Attributes(), res.attrs)
				for _, items := range res.scopes {
					sl := rl.ScopeLogs().AppendEmpty()
					for _, item := range items {
						attrs := sl.LogRecords().AppendEmpty().Attributes()
						attrs.PutInt("id", int64(item.id))
						item.claim(attrs)
					}
				}
			}
			return c.ConsumeLogs(ctx, ld)
		}}
	},
	"traces": func(t require.TestingT, cfg *Config, a *arrived) world {
		sink, err := consumer.NewTraces(func(ctx context.Context, td ptrace.Traces) error {
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.fails() {
				return errNotNow
			}
			for _, rs := range td.ResourceSpans().All() {
				tracesShape.each(rs, func(item, _ pcommon.Map) bool {
					a.note(ctx, rs.Resource().Attributes(), item)
					return true
				})
			}
			return nil
		})
		require.NoError(t, err)
		c, err := NewFactory().CreateTracesToTraces(context.Background(), connectortest.NewNopSettings(metadata.Type), cfg,
			connector.NewTracesRouter(map[pipeline.ID]consumer.Traces{pipeline.NewID(pipeline.SignalTraces): sink}))
		require.NoError(t, err)
		return world{c, func(ctx context.Context, batch []drawn) error {
			td := ptrace.NewTraces()
			for _, res := range batch {
				rs := td.ResourceSpans().AppendEmpty()
				putAll(rs.Resource().Attributes(), res.attrs)
				for _, items := range res.scopes {
					ss := rs.ScopeSpans().AppendEmpty()
					for _, item := range items {
						attrs := ss.Spans().AppendEmpty().Attributes()
						attrs.PutInt("id", int64(item.id))
						item.claim(attrs)
					}
				}
			}
			return c.ConsumeTraces(ctx, td)
		}}
	},
}

// putAll sets attributes as a client can that says all of it once more, and claims to be another one then.
func putAll(to pcommon.Map, from map[string]string) {
	var pairs []string
	for k, v := range from {
		pairs = append(pairs, k, v, k, "claimed")
	}
	attrstest.Map(pairs...).CopyTo(to)
}

func (i drawnItem) claim(attrs pcommon.Map) {
	attrs.PutStr("tenant", "claimed")
	if i.customer != "" {
		attrs.PutStr("customer.id", i.customer)
	}
}

// addPoint adds a point of the item's kind, and returns its attributes.
func addPoint(sm pmetric.ScopeMetrics, item drawnItem) pcommon.Map {
	m := sm.Metrics().AppendEmpty()
	var attrs pcommon.Map
	switch item.kind {
	case 0:
		attrs = m.SetEmptyGauge().DataPoints().AppendEmpty().Attributes()
	case 1:
		attrs = m.SetEmptySum().DataPoints().AppendEmpty().Attributes()
	case 2:
		attrs = m.SetEmptyHistogram().DataPoints().AppendEmpty().Attributes()
	case 3:
		attrs = m.SetEmptyExponentialHistogram().DataPoints().AppendEmpty().Attributes()
	default:
		attrs = m.SetEmptySummary().DataPoints().AppendEmpty().Attributes()
	}
	item.claim(attrs)
	return attrs
}

// wanted is whose an item is, told once more in other words than the code's.
func wanted(res drawn, item drawnItem, byPoint bool) string {
	name := ""
	for _, key := range []string{"service.name", "service.namespace", "k8s.namespace.name"} {
		if v := res.attrs[key]; v != "" {
			name = v
		}
	}
	if v := res.attrs["customer.id"]; byPoint && v != "" {
		name = v
	}
	if byPoint && item.customer != "" {
		name = item.customer
	}
	if !tenant.Valid(name) {
		return "_unknown"
	}
	return name
}

// Guarantees: every item of every batch, of any signal and shape, comes out exactly once, under exactly one tenant, which is the
// one that the platform says; with and without queues and batches, while destinations fail at random.
func TestEveryItemComesOutOnceAndUnderItsTenant(t *testing.T) {
	names := rapid.SampledFrom([]string{"", "a", "b", "c", "team-1", "a/b", "..", "ünknown"})
	for signal, make := range worlds {
		t.Run(signal, rapid.MakeCheck(func(t *rapid.T) {
			cfg := createDefaultConfig().(*Config)
			impatient(cfg)
			cfg.Retry.InitialInterval = time.Millisecond
			byPoint := rapid.Bool().Draw(t, "by point")
			if byPoint {
				cfg.TenantFrom = append([]string{"point:customer.id"}, cfg.TenantFrom...)
			}
			queued := rapid.Bool().Draw(t, "queued")
			if !queued {
				direct(cfg)
			} else if rapid.Bool().Draw(t, "batching") {
				batching(cfg)
			}
			a := &arrived{at: map[int][]string{}}
			calls := 0
			every := rapid.IntRange(2, 5).Draw(t, "fails every")
			a.fails = func() bool { calls++; return queued && calls%every == 0 }
			w := make(t, cfg, a)
			require.NoError(t, w.Start(context.Background(), newHost()))

			want, id := map[int][]string{}, 0
			for range rapid.IntRange(1, 4).Draw(t, "batches") {
				batch := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) drawn {
					res := drawn{attrs: map[string]string{"tenant": "claimed"}}
					for _, key := range []string{"k8s.namespace.name", "service.namespace", "service.name", "customer.id"} {
						if v := names.Draw(t, key); v != "" {
							res.attrs[key] = v
						}
					}
					for i := range res.scopes {
						for range rapid.IntRange(0, 4).Draw(t, "items") {
							res.scopes[i] = append(res.scopes[i], drawnItem{customer: names.Draw(t, "customer"), kind: rapid.IntRange(0, 4).Draw(t, "kind")})
						}
					}
					return res
				}), 0, 6).Draw(t, "batch")
				for r := range batch {
					for s := range batch[r].scopes {
						for i := range batch[r].scopes[s] {
							item := &batch[r].scopes[s][i]
							item.id = id
							whose := wanted(batch[r], *item, byPoint)
							want[id] = []string{fmt.Sprintf("[%s] [%s]", whose, whose)}
							id++
						}
					}
				}
				require.NoError(t, w.send(context.Background(), batch))
			}
			require.Eventually(t, func() bool {
				a.mu.Lock()
				defer a.mu.Unlock()
				return len(a.at) == len(want)
			}, time.Minute, time.Millisecond)
			require.NoError(t, w.Shutdown(context.Background()))
			require.Equal(t, want, a.at)
		}))
	}
}
