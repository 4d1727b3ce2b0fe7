// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// answers are the ways in which a tenant's destination fails until it works again.
var answers = map[string]func(ctx context.Context, works <-chan struct{}) error{
	"429": func(context.Context, <-chan struct{}) error {
		return exporterhelper.NewThrottleRetry(status.Error(codes.ResourceExhausted, "HTTP Status Code 429"), 10*time.Millisecond)
	},
	"500": func(context.Context, <-chan struct{}) error {
		return consumererror.NewPermanent(status.Error(codes.Unknown, "responded with HTTP Status Code 500"))
	},
	"gone": func(context.Context, <-chan struct{}) error { return errors.New("connection refused") },
	"hangs": func(ctx context.Context, works <-chan struct{}) error { // who waits for it waits until then
		select {
		case <-ctx.Done():
		case <-works:
		}
		return context.DeadlineExceeded
	},
}

// Scenario: requests of six tenants each, of which one's destination fails for all of them, and then works again.
// Guarantees: contrib#31775: the sender hears of nothing, what the others send arrives while none of the one's data does, once, and
// what the one sent arrives once its destination works. How fast it arrives is logged: it is the machine's to say.
func TestReport2AFailingDestinationStopsNobodyElse(t *testing.T) {
	const requests = 30
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			d := r.to[toTenants]
			usual := spread(t, r, requests, "well-0")
			works := make(chan struct{})
			d.fail(func(ctx context.Context, tenant string) error {
				if tenant == "sick" {
					return answer(ctx, works)
				}
				return nil
			})
			during := spread(t, r, requests, "sick")
			t.Logf("others' data takes %s, and %s with one that is sick (%s): median of %d requests", usual, during, name, requests)
			assert.Zero(t, d.points()["sick"])
			assert.Equal(t, int64(requests), r.counted("otelcol_tenant_routing_queue_size", "tenant")["sick"])
			for n := range 5 {
				assert.Len(t, d.taken[fmt.Sprintf("well-%d", n)], d.tried(fmt.Sprintf("well-%d", n)), "nobody's data is sent again")
			}

			d.fail(nil)
			close(works)
			require.Eventually(t, func() bool { return d.points()["sick"] == 10*requests }, time.Minute, time.Millisecond)
			want := map[string]int64{"sick": 300, "well-0": 900, "well-1": 600, "well-2": 600, "well-3": 600, "well-4": 600}
			for tenant, n := range d.points() {
				assert.EqualValues(t, want[tenant], n)
			}
			require.EventuallyWithT(t, func(c *collect) { // each is counted after it has arrived
				require.Equal(c, want, r.counted("otelcol_tenant_routing_items_sent", "tenant"))
			}, time.Minute, time.Millisecond)
			assert.Empty(t, r.counted("otelcol_tenant_routing_items_dropped"))
		})
	}
}

// spread sends requests of a tenant and five that are well, and is how long it takes until what those send has arrived.
func spread(t *testing.T, r *rig, requests int, first string) (median time.Duration) {
	t.Helper()
	d := r.to[toTenants]
	var delays []time.Duration
	for range requests {
		before, sent := d.points(), time.Now()
		md := batch(10, "service.name="+first)
		for n := range 5 {
			batch(10, fmt.Sprintf("service.name=well-%d", n)).ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
		}
		require.NoError(t, r.ConsumeMetrics(t.Context(), md))
		require.Eventually(t, func() bool {
			now := d.points()
			for n := range 5 {
				if tenant := fmt.Sprintf("well-%d", n); now[tenant] < before[tenant]+10 {
					return false
				}
			}
			return first == "sick" || now[first] == before[first]+20
		}, time.Minute, 100*time.Microsecond)
		delays = append(delays, time.Since(sent))
	}
	slices.Sort(delays)
	return delays[requests/2]
}

// Guarantees: a tenant whose queue is full is told so, as long as nobody else's data came with it, and it is counted.
func TestAFullQueueIsItsTenantsAffair(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Queue.Get().QueueSize = 2 })
	d := r.to[toTenants]
	d.fail(func(_ context.Context, tenant string) error {
		if tenant == "sick" {
			return assert.AnError
		}
		return nil
	})
	for range 2 {
		require.NoError(t, r.ConsumeMetrics(t.Context(), batch(1, "service.name=sick")))
	}
	err := r.ConsumeMetrics(t.Context(), batch(1, "service.name=sick"))
	require.ErrorIs(t, err, exporterhelper.ErrQueueIsFull)
	assert.False(t, consumererror.IsPermanent(err), "it can be sent again")
	require.NoError(t, r.ConsumeMetrics(t.Context(), batch(3, "service.name=sick", "service.name=well")))
	require.Eventually(t, func() bool { return d.points()["well"] == 3 }, time.Minute, time.Millisecond)
	assert.Equal(t, map[string]int64{"sick/queue_full": 1}, r.counted("otelcol_tenant_routing_items_refused", "tenant", "reason"))
	assert.Equal(t, map[string]int64{"sick/queue_full": 3}, r.counted("otelcol_tenant_routing_items_dropped", "tenant", "reason"))
	d.fail(nil)
}

// Guarantees: what a destination cannot take, by a fault of the data, is not tried for ever; by a fault of its own, only so long.
func TestWhatCannotBeTakenHoldsNoQueueUp(t *testing.T) {
	r := buildRig(t, newHost(), zap.NewNop(), func(c *Config) { c.RetryServerErrors = 100 * time.Millisecond })
	began := time.Now()
	var tries atomic.Int64
	r.now = func() time.Time { return began.Add(time.Duration(tries.Load()) * 20 * time.Millisecond) }
	require.NoError(t, r.Start(t.Context(), r.host))
	d := r.to[toTenants]
	bad := map[string]string{"bad-data": "HTTP Status Code 422", "broken": "HTTP Status Code 500"}
	d.fail(func(_ context.Context, tenant string) error {
		if tenant == "broken" {
			tries.Add(1)
		}
		if text := bad[tenant]; text != "" {
			return consumererror.NewPermanent(status.Error(codes.Unknown, text))
		}
		return nil
	})
	require.NoError(t, r.ConsumeMetrics(t.Context(), batch(1, "service.name=bad-data", "service.name=broken")))
	require.Eventually(t, func() bool {
		size := r.counted("otelcol_tenant_routing_queue_size", "tenant")
		return size["bad-data"] == 0 && size["broken"] == 0
	}, time.Minute, time.Millisecond)
	assert.Equal(t, map[string]int64{"bad-data/undelivered": 1, "broken/undelivered": 1}, r.counted("otelcol_tenant_routing_items_dropped", "tenant", "reason"))
	assert.Equal(t, 1, d.tried("bad-data"))
	assert.Equal(t, 6, d.tried("broken"), "every 20 ms, for 100 ms")
}

func TestWhatAnAnswerMeans(t *testing.T) {
	f := func(want answer, final bool, code codes.Code, text string) {
		t.Helper()
		err := status.Error(code, text)
		if final {
			err = consumererror.NewPermanent(err)
		}
		assert.Equal(t, want, meaning(err), text)
		assert.Equal(t, want, meaning(fmt.Errorf("with more text: %w", err)), text)
	}
	f(notNow, true, codes.ResourceExhausted, "RATE_LIMITED: ingestion rate limit (15000000 bytes) exceeded while adding 1000 bytes")
	f(notNow, true, codes.Unauthenticated, "HTTP Status Code 401")
	f(notNow, true, codes.PermissionDenied, "HTTP Status Code 403")
	f(asItSays, false, codes.ResourceExhausted, "HTTP Status Code 429")
	f(asItSays, false, codes.Unavailable, "HTTP Status Code 503")
	f(asItSays, false, codes.OutOfRange, "not yet")
	f(asItSays, true, codes.InvalidArgument, "HTTP Status Code 400")
	f(asItSays, true, codes.Unimplemented, "HTTP Status Code 404")
	f(asItSays, true, codes.Unknown, "HTTP Status Code 413")
	f(ownFault, true, codes.Unknown, "HTTP Status Code 500")
	f(ownFault, true, codes.Internal, "restarting")
	for _, text := range []string{
		"grpc: received message larger than max (4422913 vs. 4194304)", "grpc: received message after decompression larger than max 4194304",
		"CLIENT: Received message larger than max (5 vs. 4)", "gRPC message exceeds maximum size 4194304: 5000000",
		"Received message exceeds the maximum configured message size.",
	} {
		f(never, true, codes.ResourceExhausted, text)
	}
	f(never, false, codes.OutOfRange, "Error, decoded message length too large: found 5000000 bytes, the limit is: 4194304 bytes")
	assert.Equal(t, asItSays, meaning(assert.AnError))
}

// Guarantees: what could never be taken is not tried again, though OTLP would; and what is not about the data waits for longer than a
// destination's own faults do.
func TestWhatHasNothingToDoWithTheDataWaits(t *testing.T) {
	r := buildRig(t, newHost(), zap.NewNop(), func(c *Config) { c.RetryServerErrors = 0 })
	began := time.Now()
	var tries atomic.Int64
	r.now = func() time.Time { return began.Add(time.Duration(tries.Load()) * time.Hour) }
	require.NoError(t, r.Start(t.Context(), r.host))
	d := r.to[toTenants]
	d.fail(func(_ context.Context, tenant string) error {
		switch {
		case tenant == "large":
			return status.Error(codes.OutOfRange, "decoded message length too large")
		case tenant == "expired" && tries.Add(1) < 20:
			return consumererror.NewPermanent(status.Error(codes.Unauthenticated, "the token has expired"))
		}
		return nil
	})
	require.NoError(t, r.ConsumeMetrics(t.Context(), batch(1, "service.name=large", "service.name=expired")))
	r.arrive(map[string]int{"expired": 1})
	require.EventuallyWithT(t, func(c *collect) {
		require.Equal(c, map[string]int64{"large/undelivered": 1}, r.counted("otelcol_tenant_routing_items_dropped", "tenant", "reason"))
	}, 10*time.Second, time.Millisecond)
	assert.Equal(t, 1, d.tried("large"))
}

// Guarantees: a destination that never answers keeps the Collector from neither ending nor sending what others have.
func TestShutdownWaitsForNobodyWhoHangs(t *testing.T) {
	r := newRig(t, func(c *Config) { c.DrainTimeout = time.Hour }) // which the context cuts short when all has been seen
	d := r.to[toTenants]
	d.fail(func(ctx context.Context, tenant string) error {
		if tenant == "hangs" {
			<-ctx.Done()
			return ctx.Err()
		}
		time.Sleep(time.Millisecond)
		return nil
	})
	for range 100 {
		require.NoError(t, r.ConsumeMetrics(t.Context(), batch(1, "service.name=hangs", "service.name=well")))
	}
	ended := make(chan error)
	ctx, enough := context.WithCancel(t.Context())
	go func() { ended <- r.Shutdown(ctx) }()
	require.Eventually(t, func() bool { return d.points()["well"] == 100 }, time.Minute, time.Millisecond)
	assert.Equal(t, int64(100), r.counted("otelcol_tenant_routing_queue_size", "tenant")["hangs"], "who scrapes meanwhile need not wait")
	enough()
	require.NoError(t, <-ended)
	assert.Equal(t, map[string]int{"well": 100}, d.points())
	assert.ErrorIs(t, r.ConsumeMetrics(t.Context(), batch(1, "service.name=well")), errStopped)
}

// Guarantees: not even one that does not hear that it is to end keeps the Collector from ending; it is told.
func TestShutdownDoesNotWaitForTheDeaf(t *testing.T) {
	defer func(was time.Duration) { deaf = was }(deaf)
	deaf = 50 * time.Millisecond
	r := newRig(t, func(c *Config) { c.DrainTimeout = 50 * time.Millisecond })
	wakes := make(chan struct{})
	r.to[toTenants].fail(func(context.Context, string) error { <-wakes; return nil })
	require.NoError(t, r.ConsumeMetrics(t.Context(), batch(1, "service.name=deaf", "service.name=deaf-too")))
	require.Eventually(t, func() bool { return r.to[toTenants].tried("deaf") == 1 }, time.Minute, time.Millisecond)
	assert.EqualError(t, r.Shutdown(t.Context()), "a destination does not hear that it is to end")
	close(wakes) // for the check of goroutines at the end
}
