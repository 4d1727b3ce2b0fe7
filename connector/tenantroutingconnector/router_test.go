// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pipeline"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestEveryTenantGetsItsOwn(t *testing.T) {
	r := newRig(t)
	require.NoError(t, r.ConsumeMetrics(t.Context(), batch(3,
		"k8s.namespace.name=a service.name=x", "k8s.namespace.name=b service.name=x", "service.namespace=c service.name=x", "service.name=d", "k8s.namespace.name=a")))
	r.arrive(map[string]int{"a": 6, "b": 3, "c": 3, "d": 3})
	for tenant, all := range r.to[toTenants].taken {
		for _, md := range all {
			for _, rm := range md.ResourceMetrics().All() {
				v, _ := rm.Resource().Attributes().Get("tenant")
				assert.Equal(t, tenant, v.Str())
			}
		}
	}
	assert.Equal(t, map[string]int64{"a": 6, "b": 3, "c": 3, "d": 3}, r.counted("otelcol_tenant_routing_items_accepted", "tenant"))
	assert.Equal(t, map[string]int64{"metrics": 4}, r.counted("otelcol_tenant_routing_tenants", "data_type"))
}

// Guarantees: contrib#48895, contrib#40189: who was never heard of is routed with the next batch, without an edit.
func TestReport1ANewNamespaceIsRoutedAtOnceAndTheirNumberIsCapped(t *testing.T) {
	r := newRig(t, direct, func(c *Config) { c.MaxTenants = 2 })
	for _, ns := range []string{"a", "b", "c", "d", "a"} {
		require.NoError(t, r.ConsumeMetrics(t.Context(), batch(1, "k8s.namespace.name="+ns)))
	}
	assert.Equal(t, map[string]int{"a": 2, "b": 1, "_overflow": 2}, r.to[toTenants].points())
	assert.Equal(t, map[string]int64{"overflow": 2}, r.counted("otelcol_tenant_routing_items_strayed", "reason"))
	v, _ := r.to[toTenants].taken["_overflow"][0].ResourceMetrics().At(0).Resource().Attributes().Get("k8s.namespace.name")
	assert.Equal(t, "c", v.Str(), "whose it was can still be told")
}

// Guarantees: what a client says of itself, in a header or in an attribute, chooses no tenant; and no header of its goes on.
func TestAClientCannotChooseATenant(t *testing.T) {
	r := newRig(t, direct)
	ctx := client.NewContext(t.Context(), client.Info{
		Metadata: client.NewMetadata(map[string][]string{"x-scope-orgid": {"victim"}, "authorization": {"secret"}}),
	})
	require.NoError(t, r.ConsumeMetrics(ctx, batch(1, "k8s.namespace.name=a tenant=victim")))
	require.NoError(t, r.ConsumeMetrics(ctx, batch(1, "tenant=victim")))
	assert.Equal(t, map[string]int{"a": 1, "_unknown": 1}, r.to[toTenants].points())
	for _, info := range r.to[toTenants].info {
		assert.Empty(t, info.Metadata.Get("authorization"))
		assert.Len(t, info.Metadata.Get("x-scope-orgid"), 1)
		assert.Nil(t, info.Auth)
		assert.Nil(t, info.Addr)
	}
}

// Guarantees: nor does one that says it more than once, whatever tells the tenant; and what goes on says it once.
func TestAClientCannotChooseATenantByRepeatingItself(t *testing.T) {
	f := func(want, resource string, info client.Info, configure ...func(*Config)) {
		t.Helper()
		r := newRig(t, append(configure, direct)...)
		require.NoError(t, r.ConsumeMetrics(client.NewContext(t.Context(), info), batch(1, resource)))
		require.Equal(t, map[string]int{want: 1}, r.to[toTenants].points())
		var said []string
		for key, v := range r.to[toTenants].taken[want][0].ResourceMetrics().At(0).Resource().Attributes().All() {
			if key == "tenant" {
				said = append(said, v.AsString())
			}
		}
		assert.Equal(t, []string{want}, said)
	}
	from := func(keys ...string) func(*Config) { return func(c *Config) { c.TenantFrom = keys } }
	claim := " tenant=victim tenant=victim tenant=victim"
	trusting := func(c *Config) { c.TrustTenant = true }
	known := client.Info{Auth: authenticated{"username": "a"}}
	f("a", "k8s.namespace.name=a"+claim, client.Info{})
	f("_unknown", claim, client.Info{})
	f("a", claim, known, from("auth:username"))
	f("_unknown", claim, client.Info{}, from("auth:username"))
	f("_unknown", claim, client.Info{}, from("point:customer.id"))
	f("a", "tenant=a"+claim, client.Info{}, trusting)
	f("a", "tenant= k8s.namespace.name=a"+claim, client.Info{}, trusting)
	f("a", "k8s.namespace.name=a k8s.namespace.name=victim", client.Info{})
}

func TestTheMetadataThatIsConfiguredGoesOn(t *testing.T) {
	ctx := client.NewContext(t.Context(), client.Info{
		Metadata: client.NewMetadata(map[string][]string{"X-Request-Source": {"batch"}, "authorization": {"secret"}}),
	})
	for _, configure := range []func(*Config){direct, func(*Config) {}} {
		r := newRig(t, configure, func(c *Config) { c.KeepMetadata = []string{"x-request-source"} })
		require.NoError(t, r.ConsumeMetrics(ctx, batch(1, "k8s.namespace.name=a")))
		r.arrive(map[string]int{"a": 1})
		info := r.to[toTenants].info[0]
		assert.Equal(t, []string{"batch"}, info.Metadata.Get("x-request-source"))
		assert.Empty(t, info.Metadata.Get("authorization"))
	}
}

type authenticated map[string]any

func (a authenticated) GetAttribute(k string) any { return a[k] }
func (authenticated) GetAttributeNames() []string { return nil }

// Guarantees: a header is asked only where it is configured and an authenticator has let the client in.
func TestARequestTellsATenantWhereAnAuthenticatorVouchesForIt(t *testing.T) {
	f := func(from []string, info client.Info, want string) {
		t.Helper()
		r := newRig(t, direct, func(c *Config) { c.TenantFrom = from })
		require.NoError(t, r.ConsumeMetrics(client.NewContext(t.Context(), info), batch(1, "k8s.namespace.name=ns", "k8s.namespace.name=other")))
		got := r.to[toTenants].points()
		if want != "" {
			assert.Equal(t, map[string]int{want: 2}, got)
			return
		}
		assert.Equal(t, map[string]int{"ns": 1, "other": 1}, got)
	}
	header := client.NewMetadata(map[string][]string{"x-org": {"h"}})
	two := client.NewMetadata(map[string][]string{"x-org": {"h", "i"}})
	keys := []string{"auth:username", "metadata:X-Org", "k8s.namespace.name"}
	f(keys, client.Info{Metadata: header}, "")
	f(keys, client.Info{Metadata: header, Auth: authenticated{}}, "h")
	f(keys, client.Info{Metadata: header, Auth: authenticated{"username": "u"}}, "u")
	f(keys, client.Info{Auth: authenticated{"username": []string{"u"}}}, "u")
	f(keys, client.Info{Auth: authenticated{"username": []string{"u", "v"}}}, "")
	f(keys, client.Info{Auth: authenticated{"username": 7}}, "")
	f(keys, client.Info{Metadata: two, Auth: authenticated{}}, "")
	f(keys[2:], client.Info{Metadata: header, Auth: authenticated{"username": "u"}}, "")
	f(keys[:1], client.Info{}, "_unknown")
}

// Scenario: an authenticator such as bearertokenauth lets clients in, and does not say who they are. Guarantees: that their headers do
// not count is told, once; and where they are trusted, they count.
func TestAHeaderCountsWithoutAnAuthenticatorWhereItIsTrusted(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	headers := func(c *Config) { c.TenantFrom = []string{"auth:username", "metadata:X-Org", "k8s.namespace.name"} }
	r := newRigOn(t, newHost(), zap.New(core), direct, headers)
	ctx := client.NewContext(t.Context(), client.Info{Metadata: client.NewMetadata(map[string][]string{"x-org": {"h"}})})
	require.NoError(t, r.ConsumeMetrics(t.Context(), batch(1, "k8s.namespace.name=ns")))
	assert.Empty(t, logs.All())
	for range 2 {
		require.NoError(t, r.ConsumeMetrics(ctx, batch(1, "k8s.namespace.name=ns")))
	}
	assert.Equal(t, map[string]int{"ns": 3}, r.to[toTenants].points())
	require.Len(t, logs.All(), 1)
	assert.Equal(t, map[string]any{"header": "X-Org"}, logs.All()[0].ContextMap())

	r = newRigOn(t, newHost(), zap.New(core), direct, headers, func(c *Config) { c.TrustMetadata = true })
	require.NoError(t, r.ConsumeMetrics(ctx, batch(1, "k8s.namespace.name=ns")))
	assert.Equal(t, map[string]int{"h": 1}, r.to[toTenants].points())
	assert.Len(t, logs.All(), 1)
}

func TestAnEarlierHopIsTrustedWhereThatIsConfigured(t *testing.T) {
	r := newRig(t, direct, func(c *Config) {
		c.TrustTenant = true
		c.Mapping.Template = "prod-{tenant}"
	})
	require.NoError(t, r.ConsumeMetrics(t.Context(), batch(1, "tenant=prod-a k8s.namespace.name=x", "k8s.namespace.name=b", "tenant=a/b")))
	assert.Equal(t, map[string]int{"prod-a": 1, "prod-b": 1, "_unknown": 1}, r.to[toTenants].points(), "its name is an id, and not mapped again")
}

func TestPointsOfOneResourceMayBeOfSeveralTenants(t *testing.T) {
	r := newRig(t, direct, func(c *Config) { c.TenantFrom = []string{"point:customer.id", "service.name"} })
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.SetSchemaUrl("resource-schema")
	put(rm.Resource().Attributes(), "service.name=s host.name=h")
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName("scope")
	sum := sm.Metrics().AppendEmpty()
	sum.SetName("requests")
	sum.SetUnit("{request}")
	sum.SetEmptySum().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	sum.Sum().SetIsMonotonic(true)
	for _, c := range []string{"a", "b", "", "a"} {
		p := sum.Sum().DataPoints().AppendEmpty()
		if c != "" {
			p.Attributes().PutStr("customer.id", c)
		}
	}
	sole := sm.Metrics().AppendEmpty()
	sole.SetName("latency")
	sole.SetEmptyHistogram().DataPoints().AppendEmpty().Attributes().PutStr("customer.id", "b")
	whole := batch(2, "service.name=s2").ResourceMetrics().At(0)
	whole.MoveTo(md.ResourceMetrics().AppendEmpty())
	require.NoError(t, r.ConsumeMetrics(t.Context(), md))

	d := r.to[toTenants]
	assert.Equal(t, map[string]int{"a": 2, "b": 2, "s": 1, "s2": 2}, d.points())
	assert.Equal(t, []string{"requests", "latency"}, d.names("b"))
	got := d.taken["b"][0].ResourceMetrics().At(0)
	assert.Equal(t, "resource-schema", got.SchemaUrl())
	assert.Equal(t, map[string]any{"service.name": "s", "host.name": "h", "tenant": "b"}, got.Resource().Attributes().AsRaw())
	assert.Equal(t, "scope", got.ScopeMetrics().At(0).Scope().Name())
	m := got.ScopeMetrics().At(0).Metrics().At(0)
	assert.Equal(t, "{request}", m.Unit())
	assert.True(t, m.Sum().IsMonotonic())
	assert.Equal(t, pmetric.AggregationTemporalityDelta, m.Sum().AggregationTemporality())
}

func TestWhatNamesNoTenantGoesWhereThePolicySays(t *testing.T) {
	f := func(policy OnUnknown, wantUnknown int, wantCode codes.Code, resource string, reason string) {
		t.Helper()
		r := newRig(t, direct, func(c *Config) { c.OnUnknown = policy })
		err := r.ConsumeMetrics(t.Context(), batch(2, resource))
		if wantCode == codes.OK {
			require.NoError(t, err)
		} else {
			assert.True(t, consumererror.IsPermanent(err))
			assert.Equal(t, wantCode, status.Code(err))
		}
		assert.Equal(t, wantUnknown, r.to[toTenants].points()["_unknown"])
		assert.Equal(t, map[string]int64{reason: 2}, r.counted("otelcol_tenant_routing_items_strayed", "reason"))

		require.NoError(t, r.ConsumeMetrics(t.Context(), batch(1, resource, "service.name=known")), "what is known was taken, so that nothing is to be sent again")
		assert.Equal(t, 1, r.to[toTenants].points()["known"])
		assert.Equal(t, map[string]int64{reason: 3}, r.counted("otelcol_tenant_routing_items_strayed", "reason"))
	}
	for resource, reason := range map[string]string{"host.name=h": "unknown", "k8s.namespace.name=a/b": "invalid", "k8s.namespace.name=..": "invalid"} {
		f(ToDefault, 2, codes.OK, resource, reason)
		f(Drop, 0, codes.OK, resource, reason)
		f(Reject, 0, codes.InvalidArgument, resource, reason)
	}
}

// Guarantees: contrib#38791: of three tenants, each has its data in exactly one place.
func TestReport3ATenantOfAGroupGoesToItsPipelineAndNowhereElse(t *testing.T) {
	r := newRig(t, direct, func(c *Config) {
		c.Groups = []Group{{Name: "premium", Tenants: []string{"acme", "gold-*"}, Pipelines: Pipelines{Metrics: []pipeline.ID{toPremium}}}}
	})
	require.NoError(t, r.ConsumeMetrics(t.Context(), batch(1, "service.name=acme", "service.name=other", "service.name=gold-1", "service.name=acme2")))
	assert.Equal(t, map[string]int{"acme": 1, "gold-1": 1}, r.to[toPremium].points())
	assert.Equal(t, map[string]int{"other": 1, "acme2": 1}, r.to[toTenants].points())
}

func TestSeveralPipelinesOfATenantFailAndAreTriedAgainApart(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.DefaultPipelines.Metrics = []pipeline.ID{toTenants, toPremium}
		c.Groups = []Group{{Name: "nobody", Tenants: []string{"nobody"}, Pipelines: Pipelines{Metrics: []pipeline.ID{toPremium}}}}
	})
	r.to[toPremium].fail(func(context.Context, string) error { return assert.AnError })
	require.NoError(t, r.ConsumeMetrics(t.Context(), batch(2, "service.name=a")))
	require.Eventually(t, func() bool { return r.to[toPremium].tried("a") > 3 }, time.Minute, time.Millisecond)
	assert.Equal(t, 1, r.to[toTenants].tried("a"), "who took it gets it once")
	r.to[toPremium].fail(nil)
	require.Eventually(t, func() bool { return r.to[toPremium].points()["a"] == 2 }, time.Minute, time.Millisecond)
	assert.Equal(t, map[string]int{"a": 2}, r.to[toTenants].points())
}

// Guarantees: when a sender is told that nothing was taken, all of it is still there, to be sent again.
func TestWhatIsRefusedIsWholeAgain(t *testing.T) {
	r := newRig(t, direct)
	r.to[toTenants].fail(func(context.Context, string) error { return assert.AnError })
	md := batch(2, "service.name=a", "service.name=b", "service.name=a")
	require.ErrorIs(t, r.ConsumeMetrics(t.Context(), md), assert.AnError)
	assert.Equal(t, 6, md.DataPointCount())
	r.to[toTenants].fail(nil)
	require.NoError(t, r.ConsumeMetrics(t.Context(), md))
	assert.Equal(t, map[string]int{"a": 4, "b": 2}, r.to[toTenants].points())
	assert.Equal(t, map[string]int64{"a/failed": 4, "b/failed": 2}, r.counted("otelcol_tenant_routing_items_refused", "tenant", "reason"))
}

// Guarantees: so it is where one resource was taken apart, even if all of it goes to one tenant in the end.
func TestWhatWasTakenApartIsWholeAgain(t *testing.T) {
	r := newRig(t, direct, func(c *Config) { c.TenantFrom = []string{"point:customer.id"} })
	r.to[toTenants].fail(func(context.Context, string) error { return assert.AnError })
	for _, customers := range [][]string{{"", "a/b"}, {"a", "b", "a"}} {
		md := batch(len(customers), "host.name=h")
		for i, c := range customers {
			md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(i).Attributes().PutStr("customer.id", c)
		}
		require.ErrorIs(t, r.ConsumeMetrics(t.Context(), md), assert.AnError)
		assert.Equal(t, len(customers), md.DataPointCount())
	}
}

// Guarantees: resources without items neither take room in a limit nor make that what is refused is dropped.
func TestWhatIsEmptyHasNoSay(t *testing.T) {
	r := newRig(t, direct, func(c *Config) { c.Limits.ItemsPerSecond, c.Limits.Burst = 1, time.Second })
	r.now = func() time.Time { return time.Unix(1_700_000_000, 0) }
	require.NoError(t, r.ConsumeMetrics(t.Context(), batch(3, "service.name=a")))
	md := batch(1, "service.name=a")
	batch(0, "service.name=b").ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
	retryAfter(t, r.ConsumeMetrics(t.Context(), md))
	require.NoError(t, r.ConsumeMetrics(t.Context(), batch(0, "service.name=a")))
	assert.Equal(t, map[string]int{"a": 3}, r.to[toTenants].points())
}

// Scenario: a client sends a thousand resources with made-up names and nothing in them, beside something of its own.
// Guarantees: they take nobody's place.
func TestWhatIsEmptyIsOfNoTenant(t *testing.T) {
	r := newRig(t, direct, func(c *Config) { c.MaxTenants = 2 })
	md := batch(1, "service.name=a")
	for i := range 1000 {
		rm := batch(0, fmt.Sprint("service.name=made-up-", i)).ResourceMetrics().At(0)
		rm.MoveTo(md.ResourceMetrics().AppendEmpty())
	}
	md.ResourceMetrics().AppendEmpty()
	require.NoError(t, r.ConsumeMetrics(t.Context(), md))
	require.NoError(t, r.ConsumeMetrics(t.Context(), batch(1, "service.name=b")))
	assert.Equal(t, map[string]int{"a": 1, "b": 1}, r.to[toTenants].points())
	assert.Equal(t, 2, r.tenants.Len())
	assert.Empty(t, r.counted("otelcol_tenant_routing_items_strayed"))

	r = newRig(t, direct, func(c *Config) { c.TenantFrom = []string{"auth:username"} })
	known := client.NewContext(t.Context(), client.Info{Auth: authenticated{"username": "u"}})
	require.NoError(t, r.ConsumeMetrics(known, batch(0, "service.name=a")))
	assert.Zero(t, r.tenants.Len())

	ld, td := plog.NewLogs(), ptrace.NewTraces()
	put(ld.ResourceLogs().AppendEmpty().Resource().Attributes(), "service.name=made-up")
	ld.ResourceLogs().At(0).ScopeLogs().AppendEmpty()
	put(td.ResourceSpans().AppendEmpty().Resource().Attributes(), "service.name=made-up")
	td.ResourceSpans().At(0).ScopeSpans().AppendEmpty()
	assert.True(t, logsShape.isEmpty(ld.ResourceLogs().At(0)))
	assert.True(t, tracesShape.isEmpty(td.ResourceSpans().At(0)))
	ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().AppendEmpty()
	td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().AppendEmpty()
	assert.False(t, logsShape.isEmpty(ld.ResourceLogs().At(0)))
	assert.False(t, tracesShape.isEmpty(td.ResourceSpans().At(0)))
}

// Guarantees: a sender never sends one tenant's data again because another's was not taken.
func TestWhereOneTenantIsTakenTheOthersAreDroppedAndCounted(t *testing.T) {
	r := newRig(t, direct)
	r.to[toTenants].fail(func(_ context.Context, tenant string) error {
		if tenant == "b" {
			return assert.AnError
		}
		return nil
	})
	require.NoError(t, r.ConsumeMetrics(t.Context(), batch(2, "service.name=a", "service.name=b")))
	assert.Equal(t, map[string]int{"a": 2}, r.to[toTenants].points())
	assert.Equal(t, map[string]int64{"b/failed": 2}, r.counted("otelcol_tenant_routing_items_dropped", "tenant", "reason"))
}

func TestATenantWithoutDataIsForgottenAndComesBack(t *testing.T) {
	r := newRig(t, func(c *Config) { c.TenantTTL = 50 * time.Millisecond })
	require.NoError(t, r.ConsumeMetrics(t.Context(), batch(1, "service.name=a")))
	require.Eventually(t, func() bool { return r.counted("otelcol_tenant_routing_evictions", "data_type")["metrics"] == 1 }, time.Minute, time.Millisecond)
	assert.Zero(t, r.tenants.Len())
	require.NoError(t, r.ConsumeMetrics(t.Context(), batch(1, "service.name=a")))
	r.arrive(map[string]int{"a": 2})
}

func TestATenantWhoseQueueIsNotEmptyStays(t *testing.T) {
	r := newRig(t, func(c *Config) { c.TenantTTL = 20 * time.Millisecond })
	r.to[toTenants].fail(func(context.Context, string) error { return assert.AnError })
	require.NoError(t, r.ConsumeMetrics(t.Context(), batch(1, "service.name=a")))
	require.Eventually(t, func() bool { return r.to[toTenants].tried("a") > 10 }, time.Minute, time.Millisecond)
	assert.Equal(t, 1, r.tenants.Len())
	assert.Equal(t, map[string]int64{"a/metrics/tenants": 1}, r.counted("otelcol_tenant_routing_queue_size", "tenant", "pipeline"))
	r.to[toTenants].fail(nil)
	require.Eventually(t, func() bool { return r.tenants.Len() == 0 }, time.Minute, time.Millisecond)
	r.arrive(map[string]int{"a": 1})
}

// Guarantees: contrib#33310, contrib#24054: what two tenants tell under one name stays two things, for whoever comes after.
func TestReport6TheSameSeriesOfTwoTenantsStayTwo(t *testing.T) {
	r := newRig(t, direct)
	require.NoError(t, r.ConsumeMetrics(t.Context(), batch(1, "k8s.namespace.name=a service.name=chat", "k8s.namespace.name=b service.name=chat")))
	var told []any
	for _, tenant := range []string{"a", "b"} {
		require.Len(t, r.to[toTenants].taken[tenant], 1)
		attrs := r.to[toTenants].taken[tenant][0].ResourceMetrics().At(0).Resource().Attributes().AsRaw()
		assert.Equal(t, "chat", attrs["service.name"])
		told = append(told, attrs["tenant"])
	}
	assert.Equal(t, []any{"a", "b"}, told)
}

// Scenario: ten thousand tenants come and go, each with one request, while nothing takes what is in their queues.
// Guarantees: contrib#46423, contrib#33540: everything that is kept of them is bounded, and those that are there go on.
func TestReport7TenantsThatComeAndGoAreBounded(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.MaxTenants, c.Queue.Get().QueueSize, c.DrainTimeout = 50, 10, 10*time.Millisecond
		c.Mapping.Template = "x-{tenant}"
	})
	r.to[toTenants].fail(func(ctx context.Context, _ string) error {
		<-ctx.Done()
		return ctx.Err()
	})
	refused := 0
	for i := range 10_000 {
		if r.ConsumeMetrics(t.Context(), batch(5, fmt.Sprintf("service.name=%d", i))) != nil {
			refused++
		}
	}
	assert.Equal(t, 50, r.tenants.Len())
	assert.Len(t, r.known, 52, "and the two for all others")
	assert.LessOrEqual(t, r.mapping.made.Len(), 200)
	assert.Equal(t, 10_000-50-10, refused, "the overflow tenant's queue is full, too")
	assert.Equal(t, int64(9950*5), r.counted("otelcol_tenant_routing_items_strayed", "reason")["overflow"])
}
