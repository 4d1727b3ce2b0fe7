// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// PodsOptions say how the kubelet is asked. What is zero has the default that stands beside it.
type PodsOptions struct {
	// Socket is the kubelet's for pod resources: /var/lib/kubelet/pod-resources/kubelet.sock.
	Socket string
	// Interval is how often it is asked (15s). A process that is not known yet is asked for within a second.
	Interval time.Duration
	// Timeout is how long an answer may take (5s).
	Timeout time.Duration
	// MaxAge is how old an answer may get while there is no newer one (1m), since a kubelet that is away gives no device
	// to anybody. Then nothing is known.
	MaxAge time.Duration
	// OnChange hears, from a goroutine of Pods, when the kubelet does not answer any longer, and why, and with nil when
	// it does. A machine without a kubelet gives fs.ErrNotExist.
	OnChange func(error)
}

const (
	// soonest is how much time lies between two questions at least, and between two tries at first.
	soonest = time.Second
	// slowest is how much time lies between two tries at most.
	slowest = 30 * time.Second
	// maxAnswer is the kubelet's own limit.
	maxAnswer = 16 << 20
)

// Pods knows which pods hold which devices. It asks the kubelet in a goroutine of its own, so that nobody waits for it.
type Pods struct {
	opts PodsOptions
	// known is replaced as a whole; nil: nothing is known.
	known  atomic.Pointer[owners]
	hurry  chan struct{} // a question that should not wait for the interval
	stop   context.CancelFunc
	ended  sync.WaitGroup
	failed error // of the goroutine: why the last question had no answer
	told   bool  // of the goroutine: OnChange has heard of the first answer or failure
}

// NewPods begins to ask. Close ends it.
func NewPods(opts PodsOptions) *Pods {
	opts.Interval = orDefault(opts.Interval, 15*time.Second)
	opts.Timeout = orDefault(opts.Timeout, 5*time.Second)
	opts.MaxAge = orDefault(opts.MaxAge, time.Minute)
	ctx, stop := context.WithCancel(context.Background())
	p := &Pods{opts: opts, hurry: make(chan struct{}, 1), stop: stop}
	p.ended.Go(func() { p.ask(ctx) })
	return p
}

func orDefault(d, otherwise time.Duration) time.Duration {
	if d <= 0 {
		return otherwise
	}
	return d
}

// Close ends the questions and waits for that. It may be called twice.
func (p *Pods) Close() {
	p.stop()
	p.ended.Wait()
}

// Owner returns whom a device was given to. ok is false when it was given to nobody, or the kubelet does not answer.
func (p *Pods) Owner(device Device) (owner Owner, ok bool) {
	known := p.known.Load()
	if known == nil {
		return Owner{}, false
	}
	return known.owner(device)
}

// Devices is the number of devices of which an owner is known, and of those that were beyond the limit.
func (p *Pods) Devices() (known, beyond int) {
	if o := p.known.Load(); o != nil {
		return len(o.of), o.beyond
	}
	return 0, 0
}

// Hurry asks for a new answer soon. It returns at once.
func (p *Pods) Hurry() {
	select {
	case p.hurry <- struct{}{}:
	default: // one waits already
	}
}

func (p *Pods) ask(ctx context.Context) {
	conn := (*grpc.ClientConn)(nil)
	answered := time.Time{}
	pause := soonest
	for {
		known, err := p.list(ctx, &conn)
		if ctx.Err() != nil {
			p.hangUp(&conn)
			return
		}
		p.tell(err)
		wait := p.opts.Interval
		if err == nil {
			p.known.Store(known)
			answered, pause = time.Now(), soonest
		} else {
			p.hangUp(&conn) // a kubelet that has started anew listens on another socket of the same name
			wait, pause = pause, min(2*pause, slowest)
			if left := p.opts.MaxAge - time.Since(answered); left <= 0 {
				p.known.Store(nil)
			} else {
				wait = min(wait, left)
			}
		}
		if !p.sleep(ctx, wait, err == nil) {
			p.hangUp(&conn)
			return
		}
	}
}

// sleep waits until the next question. It is false when there is none.
func (p *Pods) sleep(ctx context.Context, wait time.Duration, mayHurry bool) bool {
	first := time.NewTimer(min(wait, soonest))
	defer first.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-first.C:
	}
	rest := time.NewTimer(wait - min(wait, soonest))
	defer rest.Stop()
	hurry := p.hurry
	if !mayHurry { // a kubelet in trouble is not asked the more for it
		hurry = nil
	}
	select {
	case <-ctx.Done():
		return false
	case <-rest.C:
	case <-hurry:
	}
	return true
}

// list asks once, and connects where that is needed.
func (p *Pods) list(ctx context.Context, conn **grpc.ClientConn) (*owners, error) {
	if *conn == nil {
		// A socket that is missing is told in the words of the file system, not of gRPC.
		path, err := filepath.Abs(p.opts.Socket)
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("the kubelet's socket for pod resources: %w", err)
		}
		*conn, err = grpc.NewClient("unix://"+path, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithNoProxy(), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)))
		if err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, p.opts.Timeout)
	defer cancel()
	asked, err := sinceBoot()
	if err != nil {
		return nil, err
	}
	answer, err := podresources.NewPodResourcesListerClient(*conn).List(ctx, &podresources.ListPodResourcesRequest{})
	if err != nil {
		return nil, fmt.Errorf("ask the kubelet at %s for pod resources: %w", p.opts.Socket, err)
	}
	return ownersOf(answer.GetPodResources(), asked), nil
}

func (p *Pods) hangUp(conn **grpc.ClientConn) {
	if *conn != nil {
		_ = (*conn).Close() // fails only when it is closed
		*conn = nil
	}
}

// tell reports a change: from an answer to none and back, or from one reason to another.
func (p *Pods) tell(err error) {
	same := p.told && (err == nil) == (p.failed == nil) && errors.Is(err, os.ErrNotExist) == errors.Is(p.failed, os.ErrNotExist)
	p.failed, p.told = err, true
	if !same && p.opts.OnChange != nil {
		p.opts.OnChange(err)
	}
}

// sinceBoot is the clock that /proc/PID/stat tells the start of a process in.
func sinceBoot() (ticks uint64, err error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0, err
	}
	return uint64(now.Nano() / int64(time.Second/ticksPerSecond)), nil
}

// ticksPerSecond is USER_HZ, the same on every architecture that a GPU is found on.
const ticksPerSecond = 100
