// SPDX-License-Identifier: Apache-2.0

package nvmlsource

import (
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/internal/nvml"
)

// patience is how long one wait for an Xid takes, and so how long a stop can take.
const patience = 100 * time.Millisecond

// maxPending is how many Xids are told at most after the stop.
const maxPending = 64

// watcher waits for Xids in a goroutine of its own.
type watcher struct {
	set      *nvml.Events
	cards    []watched
	tell     func(gpu.Event)
	now      func() time.Time
	patience time.Duration
	quit     chan struct{}
	done     chan struct{}
}

type watched struct {
	dev  nvml.Device
	uuid string
}

// watch begins to wait, and is nil where no device tells Xids. Each card that is here knows then whether it is heard.
func watch(lib *nvml.Library, cards []*card, tell func(gpu.Event), now func() time.Time, patience time.Duration) *watcher {
	set, o := lib.NewEvents()
	if o != nvml.OK {
		for _, c := range cards {
			if c.here {
				c.deaf = o
			}
		}
		return nil
	}
	w := &watcher{set: set, tell: tell, now: now, patience: patience, quit: make(chan struct{}), done: make(chan struct{})}
	for _, c := range cards {
		if !c.here {
			continue
		}
		if c.deaf = set.Register(c.dev); c.deaf == nvml.OK {
			w.cards = append(w.cards, watched{c.dev, c.uuid})
		}
	}
	if len(w.cards) == 0 {
		set.Free()
		return nil
	}
	go w.run()
	return w
}

func (w *watcher) run() {
	defer close(w.done)
	for {
		select {
		case <-w.quit:
			w.drain()
			return
		default:
		}
		switch o := w.wait(w.patience); o {
		case nvml.OK, nvml.Absent:
		default: // it fails at once as long as a device is lost
			select {
			case <-w.quit:
			case <-time.After(w.patience):
			}
		}
	}
}

// wait tells the next Xid, if there is one in time; else it is Absent.
func (w *watcher) wait(patience time.Duration) nvml.Outcome {
	xid, o := w.set.Wait(patience)
	if o == nvml.OK {
		w.tell(w.event(&xid))
	}
	return o
}

// drain tells what has happened until now and was not told yet.
func (w *watcher) drain() {
	for range maxPending {
		if w.wait(0) != nvml.OK {
			return
		}
	}
}

func (w *watcher) event(xid *nvml.Xid) gpu.Event {
	e := gpu.Event{Time: w.now().UnixNano(), Kind: gpu.Xid, Code: xid.Code}
	for i := range w.cards {
		if w.cards[i].dev.Same(xid.Device) {
			e.UUID = w.cards[i].uuid
		}
	}
	if e.UUID == "" {
		e.UUID, _ = xid.Device.UUID()
	}
	if xid.GPUInstance != nvml.NoInstance {
		e.GPUInstance, e.ComputeInstance, e.Instance = xid.GPUInstance, xid.ComputeInstance, true
	}
	return e
}

// stop ends the waiting and frees the set. It can take as long as patience.
func (w *watcher) stop() {
	if w == nil {
		return
	}
	close(w.quit)
	<-w.done
	w.set.Free()
}
