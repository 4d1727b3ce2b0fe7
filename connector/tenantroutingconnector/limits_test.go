// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.uber.org/zap"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// retryAfter is how long a refusal tells the sender to wait.
func retryAfter(t testing.TB, err error) time.Duration {
	t.Helper()
	assert.False(t, consumererror.IsPermanent(err))
	s, ok := status.FromError(err)
	require.True(t, ok)
	require.Equal(t, codes.ResourceExhausted, s.Code(), err)
	for _, d := range s.Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok {
			return info.RetryDelay.AsDuration()
		}
	}
	t.Fatal("without RetryInfo, gRPC clients do not send RESOURCE_EXHAUSTED again")
	return 0
}

// Scenario: one tenant sends a hundred times its limit, beside others who keep to it.
// Guarantees: core#10602: the others lose nothing; who sends too much alone is told to send again later, and where others' data
// comes with it, the excess is dropped and counted.
func TestReport5ANoisyTenantIsLimitedAndStarvesNobody(t *testing.T) {
	r := newRig(t, direct, func(c *Config) { c.Limits.ItemsPerSecond, c.Limits.Burst = 100, time.Second })
	clock := time.Unix(1_700_000_000, 0)
	r.now = func() time.Time { return clock }
	refused, dropped := 0, 0
	for range 10 { // seconds
		for i := range 100 {
			if i%2 == 0 {
				if err := r.ConsumeMetrics(t.Context(), batch(100, "service.name=noisy")); err != nil {
					assert.GreaterOrEqual(t, retryAfter(t, err), time.Second, "Retry-After has whole seconds")
					refused += 100
				}
				continue
			}
			require.NoError(t, r.ConsumeMetrics(t.Context(), batch(1, "service.name=well", "service.name=noisy")))
			dropped++
		}
		clock = clock.Add(time.Second)
	}
	got := r.to[toTenants].points()
	assert.Equal(t, 500, got["well"])
	assert.InDelta(t, 1000, got["noisy"], 100, "as much as it may, no more")
	assert.Equal(t, int64(refused), r.counted("otelcol_tenant_routing_items_refused", "tenant", "reason")["noisy/items_per_second"])
	lost := r.counted("otelcol_tenant_routing_items_dropped", "tenant", "reason")
	assert.Equal(t, int64(50*100*10+dropped), int64(got["noisy"]+refused)+lost["noisy/items_per_second"], "all is accounted for")
	assert.Len(t, lost, 1)
}

func TestBytesAreLimited(t *testing.T) {
	md := batch(100, "service.name=a")
	r := newRig(t, direct, func(c *Config) {
		c.Limits.BytesPerSecond, c.Limits.Burst = float64(metricsSignal.bytes(md)), 2*time.Second
	})
	clock := time.Unix(1_700_000_000, 0)
	r.now = func() time.Time { return clock }
	require.NoError(t, r.ConsumeMetrics(t.Context(), batch(100, "service.name=a")))
	assert.Greater(t, retryAfter(t, r.ConsumeMetrics(t.Context(), batch(100, "service.name=a"))), time.Duration(0))
	assert.Equal(t, map[string]int64{"a/bytes_per_second": 100}, r.counted("otelcol_tenant_routing_items_refused", "tenant", "reason"))
	clock = clock.Add(time.Second)
	require.NoError(t, r.ConsumeMetrics(t.Context(), batch(100, "service.name=a")))
}

// Guarantees: what is larger than a burst can pass once in a while, and is paid for.
func TestARequestThatIsLargerThanTheBurstIsNotRefusedForEver(t *testing.T) {
	r := newRig(t, direct, func(c *Config) { c.Limits.ItemsPerSecond, c.Limits.Burst = 10, time.Second })
	clock := time.Unix(1_700_000_000, 0)
	r.now = func() time.Time { return clock }
	require.NoError(t, r.ConsumeMetrics(t.Context(), batch(100, "service.name=a")))
	assert.Equal(t, 11*time.Second, retryAfter(t, r.ConsumeMetrics(t.Context(), batch(100, "service.name=a"))), "the debt of 90, and the burst of 10")
	clock = clock.Add(10 * time.Second)
	require.NoError(t, r.ConsumeMetrics(t.Context(), batch(100, "service.name=a")))
}

func TestSeriesBeyondTheLimitAreDroppedAndTheOthersGoOn(t *testing.T) {
	r := newRig(t, direct, func(c *Config) { c.Limits.ActiveSeries = 5 })
	clock := time.Unix(1_700_000_000, 0)
	r.now = func() time.Time { return clock }
	for range 2 {
		require.NoError(t, r.ConsumeMetrics(t.Context(), batch(8, "service.name=a", "service.name=b host.name=1")))
	}
	assert.Equal(t, map[string]int{"a": 10, "b": 10}, r.to[toTenants].points())
	assert.Equal(t, map[string]int64{"a/active_series": 6, "b/active_series": 6}, r.counted("otelcol_tenant_routing_items_dropped", "tenant", "reason"))
	assert.Equal(t, map[string]int64{"a": 5, "b": 5}, r.counted("otelcol_tenant_routing_active_series", "tenant"))
	require.NoError(t, r.ConsumeMetrics(t.Context(), batch(1, "service.name=b host.name=2")), "of which nothing is left")
	clock = clock.Add(20 * time.Minute)
	require.NoError(t, r.ConsumeMetrics(t.Context(), batch(5, "service.name=b host.name=2")))
	assert.Equal(t, map[string]int{"a": 10, "b": 15}, r.to[toTenants].points(), "series that are not heard of any more make room")
}

func TestAGroupHasLimitsOfItsOwn(t *testing.T) {
	r := newRig(t, direct, func(c *Config) {
		c.Limits.ItemsPerSecond, c.Limits.Burst = 1, time.Second
		c.Groups = []Group{{Name: "premium", Tenants: []string{"acme"}, Limits: configoptional.Some(Limits{ItemsPerSecond: 10})}}
	})
	r.now = func() time.Time { return time.Unix(1_700_000_000, 0) }
	for range 10 {
		require.NoError(t, r.ConsumeMetrics(t.Context(), batch(1, "service.name=acme")))
	}
	require.NoError(t, r.ConsumeMetrics(t.Context(), batch(1, "service.name=other")))
	require.Error(t, r.ConsumeMetrics(t.Context(), batch(1, "service.name=other")))
	require.Error(t, r.ConsumeMetrics(t.Context(), batch(1, "service.name=acme")))
}

// Scenario: messages of one tenant each come one after another, as from a partition of Kafka, whose receiver tries what is refused
// again before it goes on; one tenant sends too much, and nothing takes what it sends.
// Guarantees: with on_excess: drop, no message is refused, so that nobody waits; what is beyond the limits or the queue is counted as
// lost, and what is wrong with the gateway itself is still told.
func TestWhereExcessIsDroppedNobodyWaitsBehindIt(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.OnExcess, c.Limits.ItemsPerSecond, c.Limits.Burst, c.Queue.Get().QueueSize = DropExcess, 10, time.Second, 5
	})
	r.now = func() time.Time { return time.Unix(1_700_000_000, 0) }
	d := r.to[toTenants]
	d.fail(func(_ context.Context, tenant string) error {
		if tenant == "noisy" {
			return assert.AnError
		}
		return nil
	})
	for n := range 10 {
		require.NoError(t, r.ConsumeMetrics(t.Context(), batch(1, "service.name=noisy")), "the queue takes five")
		require.NoError(t, r.ConsumeMetrics(t.Context(), batch(10, "service.name=noisy")), "the limit takes ten points")
		require.NoError(t, r.ConsumeMetrics(t.Context(), batch(1, "service.name=well")))
		r.arrive(map[string]int{"well": n + 1})
	}
	assert.Empty(t, r.counted("otelcol_tenant_routing_items_refused"))
	assert.Equal(t, map[string]int64{"noisy/queue_full": 5, "noisy/items_per_second": 100}, r.counted("otelcol_tenant_routing_items_dropped", "tenant", "reason"))
	d.fail(nil)
	r.arrive(map[string]int{"well": 10, "noisy": 5})

	r = newRig(t, direct, func(c *Config) { c.OnExcess = DropExcess })
	r.to[toTenants].fail(func(context.Context, string) error { return assert.AnError })
	require.ErrorIs(t, r.ConsumeMetrics(t.Context(), batch(1, "service.name=a")), assert.AnError)
}

// Scenario: a request is larger than its tenant's whole queue, in memory and on a disk. Guarantees: the sender is told not to send it
// again, and why, and smaller ones are taken; where others' data came with it, or excess is dropped, it is counted as lost.
func TestWhatIsLargerThanTheQueueIsNotSentAgainForEver(t *testing.T) {
	size := int64(metricsSignal.bytes(batch(20, "service.name=a tenant=a")))
	for name, queue := range map[string]func(*exporterhelper.QueueBatchConfig){
		"bytes": func(q *exporterhelper.QueueBatchConfig) {
			q.Sizer, q.QueueSize = exporterhelper.RequestSizerTypeBytes, size-1
		},
		"items": func(q *exporterhelper.QueueBatchConfig) {
			q.Sizer, q.QueueSize = exporterhelper.RequestSizerTypeItems, 19
		},
	} {
		for _, stored := range []bool{false, true} {
			t.Run(fmt.Sprint(name, stored), func(t *testing.T) {
				h := newHost()
				h.extensions[storageID] = &disk{values: map[string][]byte{}, left: forEver}
				configure := []func(*Config){func(c *Config) { queue(c.Queue.Get()) }}
				if stored {
					configure = append(configure, persistent)
				}
				r := newRigOn(t, h, zap.NewNop(), configure...)
				err := r.ConsumeMetrics(t.Context(), batch(20, "service.name=a"))
				assert.True(t, consumererror.IsPermanent(err), err)
				assert.Equal(t, codes.InvalidArgument, status.Code(err))
				assert.ErrorContains(t, err, name+" is larger than the queue of tenant a")
				require.NoError(t, r.ConsumeMetrics(t.Context(), batch(1, "service.name=a")))
				md := batch(20, "service.name=a")
				batch(1, "service.name=b").ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
				require.NoError(t, r.ConsumeMetrics(t.Context(), md))
				r.arrive(map[string]int{"a": 1, "b": 1})
				assert.Equal(t, map[string]int64{"a/too_large": 40}, r.counted("otelcol_tenant_routing_items_dropped", "tenant", "reason"))
				assert.Empty(t, r.counted("otelcol_tenant_routing_items_refused"))

				r = newRigOn(t, h, zap.NewNop(), append(configure, func(c *Config) { c.OnExcess = DropExcess })...)
				require.NoError(t, r.ConsumeMetrics(t.Context(), batch(20, "service.name=a")))
				assert.Equal(t, map[string]int64{"a/too_large": 20}, r.counted("otelcol_tenant_routing_items_dropped", "tenant", "reason"))
			})
		}
	}
}

// Guarantees: what is final is counted as lost, not as sent again.
func TestWhatIsRefusedForGoodIsLost(t *testing.T) {
	r := newRig(t, direct)
	r.to[toTenants].fail(func(context.Context, string) error { return consumererror.NewPermanent(assert.AnError) })
	assert.True(t, consumererror.IsPermanent(r.ConsumeMetrics(t.Context(), batch(3, "service.name=a"))))
	assert.Empty(t, r.counted("otelcol_tenant_routing_items_refused"))
	assert.Equal(t, map[string]int64{"a/failed": 3}, r.counted("otelcol_tenant_routing_items_dropped", "tenant", "reason"))
}
