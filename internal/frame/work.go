// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"context"
	"sync"
	"time"
)

const (
	// Tick is how often a component looks whether there is something to tell. Results leave within a second of what caused them.
	Tick = 250 * time.Millisecond
	// MaxAhead is how far event time may be ahead of the wall clock (design: rules for everything stateful).
	MaxAhead = time.Minute
	// LastWords is how long consumers may take for what is left at a shutdown. One that blocks must not cost the last checkpoint.
	LastWords = 5 * time.Second
)

// Work is what a component does by itself, each in a goroutine of its own. The zero value is ready.
type Work struct {
	running context.Context
	stop    context.CancelFunc // nil before Start
	done    sync.WaitGroup
}

// Start begins the time in which there is work.
func (w *Work) Start() { w.running, w.stop = context.WithCancel(context.Background()) }

// Started reports whether it has begun.
func (w *Work) Started() bool { return w.stop != nil }

// Go does something until it is done or the work stops.
func (w *Work) Go(do func(context.Context)) { w.done.Go(func() { do(w.running) }) }

// Every does something every interval until the work stops.
func (w *Work) Every(interval time.Duration, do func(context.Context)) {
	w.Go(func(ctx context.Context) {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				do(ctx)
			}
		}
	})
}

// Stop stops the work and waits until all of it has ended, or for as long as a context allows. It interrupts a consumer that blocks.
func (w *Work) Stop(ctx context.Context) error {
	w.stop()
	ended := make(chan struct{})
	go func() {
		w.done.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
