// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.uber.org/zap"
	"pgregory.net/rapid"
)

var errFull = errors.New("full")

// Guarantees: whatever the consumer answers, and whatever comes while it thinks, each event is taken once or counted as lost
// once, in order, and no more than the limit wait.
func TestEachEventIsTakenOrCounted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 4).Draw(t, "limit")
		now := time.Unix(0, 0)
		var (
			b     *Box[int]
			taken []int
			next  int
			lost  int64
		)
		add := func(n int) {
			for range n {
				b.Add(next)
				next++
			}
		}
		b = New(limit, zap.NewNop(), func(_ context.Context, events []int) error {
			add(rapid.IntRange(0, 6).Draw(t, "meanwhile"))
			switch rapid.IntRange(0, 2).Draw(t, "answer") {
			case 0:
				return errFull
			case 1:
				return consumererror.NewPermanent(errFull)
			}
			taken = append(taken, events...)
			return nil
		}, func(_ context.Context, n int64) { lost += n })
		b.Clock(func() time.Time { return now })
		for range rapid.IntRange(1, 20).Draw(t, "rounds") {
			add(rapid.IntRange(0, 6).Draw(t, "events"))
			now = now.Add(time.Minute)
			b.Send(t.Context())
			assert.LessOrEqual(t, b.Len(), limit)
		}
		for i := 1; i < len(taken); i++ {
			assert.Less(t, taken[i-1], taken[i])
		}
		assert.Equal(t, int64(next), int64(len(taken)+b.Len())+lost+b.dropped)
	})
}

func TestAConsumerThatRefusesIsLeftAlone(t *testing.T) {
	now, calls := time.Unix(0, 0), 0
	b := New(8, zap.NewNop(), func(context.Context, []string) error { calls++; return errFull }, func(context.Context, int64) { t.Error("nothing is lost") })
	b.Clock(func() time.Time { return now })
	b.Add("xid")
	b.Send(t.Context())
	b.Send(t.Context())
	assert.Equal(t, 1, calls)
	now = now.Add(time.Second)
	b.Send(t.Context())
	b.Send(t.Context())
	assert.Equal(t, 2, calls)
	b.Flush(t.Context())
	assert.Equal(t, 3, calls)
	assert.Equal(t, 1, b.Len())
}
