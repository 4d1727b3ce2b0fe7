// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Rates bound items and bytes per second. Both are taken, or neither. It is safe for concurrent use.
type Rates struct {
	mu    sync.Mutex
	items bucket
	bytes bucket
}

// Reason says which limit refuses.
type Reason int

// The limits.
const (
	None Reason = iota
	Items
	Bytes
)

// NewRates returns a limiter by amounts per second, of which 0 is no limit. burst is for how long a sender that was silent may
// have saved up.
func NewRates(items, bytes float64, burst time.Duration) *Rates {
	return &Rates{items: newBucket(items, burst), bytes: newBucket(bytes, burst)}
}

// CountsBytes reports whether Take needs to know of bytes, which cost time to count.
func (r *Rates) CountsBytes() bool { return r.bytes.limiter != nil }

// Take takes an amount, or says which limit refuses it, and how long to wait until it would not.
func (r *Rates) Take(now time.Time, items, bytes int) (refused Reason, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ofItems, ofBytes := r.items.wait(now, items), r.bytes.wait(now, bytes)
	switch {
	case ofItems == 0 && ofBytes == 0:
		r.items.take(now, items)
		r.bytes.take(now, bytes)
		return None, 0
	case ofItems >= ofBytes:
		return Items, ofItems
	default:
		return Bytes, ofBytes
	}
}

// bucket is a token bucket in which an amount that is larger than the whole of it can go into debt: a full bucket lets it
// pass, and what follows waits until the debt is paid. Otherwise it could never pass, however often it is sent again.
type bucket struct {
	limiter *rate.Limiter // nil without a limit
}

func newBucket(perSecond float64, burst time.Duration) bucket {
	if perSecond <= 0 {
		return bucket{}
	}
	size := math.Min(math.Max(1, math.Ceil(perSecond*burst.Seconds())), math.MaxInt32)
	return bucket{rate.NewLimiter(rate.Limit(perSecond), int(size))}
}

// wait is how long it takes until n can be taken, 0 when it can be now.
func (b bucket) wait(now time.Time, n int) time.Duration {
	if b.limiter == nil {
		return 0
	}
	missing := float64(min(n, b.limiter.Burst())) - b.limiter.TokensAt(now)
	if missing <= 0 {
		return 0
	}
	return time.Duration(math.Ceil(missing / float64(b.limiter.Limit()) * float64(time.Second)))
}

func (b bucket) take(now time.Time, n int) {
	if b.limiter == nil {
		return
	}
	for n > 0 {
		part := min(n, b.limiter.Burst())
		b.limiter.ReserveN(now, part)
		n -= part
	}
}
