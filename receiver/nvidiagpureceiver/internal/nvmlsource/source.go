// SPDX-License-Identifier: Apache-2.0

package nvmlsource

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/internal/nvml"
)

const (
	// A lost device makes us open the library anew: soon, then ever more seldom.
	firstReopening = 10 * time.Second
	lastReopening  = 10 * time.Minute
)

// errOver is the error of a session that the driver has ended.
var errOver = errors.New("the driver was unloaded, restarted or changed")

// errClosed is the error of a reading without a session.
var errClosed = errors.New("the source is not open")

// Source is a gpu.Source. Its zero value is not ready: use New.
type Source struct {
	path   string
	now    func() time.Time
	events func(gpu.Event)

	lib     *nvml.Library
	cards   []*card // in the order of their indices; one that was seen stays until Close
	watcher *watcher
	meter   *meter
	plan    plan

	// What readings use again.
	whole, part reading // of a GPU, and of an instance of it
	list        []nvml.Process
	times       []uint64 // of the newest sample of each process of a device

	reopenAt    time.Time // zero while no device is lost
	reopenAfter time.Duration
}

// New makes a source on the library at path; empty is the driver's own.
func New(path string) *Source { return &Source{path: path, now: time.Now} }

// Open implements gpu.Source.
func (s *Source) Open(ctx context.Context, events func(gpu.Event)) error {
	if s.lib != nil {
		return errors.New("the source is open already")
	}
	s.events = events
	if err := s.begin(ctx); err != nil {
		return errors.Join(err, s.Close())
	}
	return nil
}

// begin opens the library, finds the devices and waits for their events. What it has opened when it fails is for end.
func (s *Source) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	lib, err := nvml.Open(s.path)
	if errors.Is(err, nvml.ErrUnavailable) {
		return gpu.Unavailable(err)
	}
	if err != nil {
		return err
	}
	s.lib = lib
	n, o := lib.Count()
	if o != nvml.OK {
		return gpu.Unavailable(fmt.Errorf("counting GPUs has %s", o))
	}
	for i := range n {
		s.find(i)
	}
	if len(s.cards) == 0 {
		return gpu.Unavailable(fmt.Errorf("no GPU of %d can be seen", n))
	}
	s.watcher = watch(lib, s.cards, s.events, s.now)
	return nil
}

// end gives everything back but what is known of the devices.
func (s *Source) end() error {
	if s.lib == nil {
		return nil
	}
	s.watcher.stop()
	s.meter.stop()
	for _, c := range s.cards {
		c.release()
	}
	err := s.lib.Close()
	s.lib, s.watcher, s.meter = nil, nil, nil
	return err
}

// Close implements gpu.Source.
func (s *Source) Close() error {
	err := s.end()
	s.cards, s.reopenAt = nil, time.Time{}
	return err
}

// Read implements gpu.Source.
func (s *Source) Read(ctx context.Context, want *gpu.Set, into *gpu.Snapshot) error {
	if s.lib == nil {
		return errClosed
	}
	if err := s.reopen(ctx); err != nil {
		return err
	}
	into.Driver = s.lib.Driver()
	s.plan.make(want)
	lost := false
	for _, c := range s.cards {
		if err := ctx.Err(); err != nil {
			return err
		}
		o := s.readCard(c, into)
		if o == nvml.Over {
			return errOver
		}
		lost = lost || o == nvml.Lost
	}
	s.schedule(lost)
	return nil
}

// schedule decides when the library is opened anew for the sake of a lost device.
func (s *Source) schedule(lost bool) {
	switch {
	case !lost:
		s.reopenAt, s.reopenAfter = time.Time{}, 0
	case s.reopenAt.IsZero():
		s.reopenAfter = min(max(firstReopening, 2*s.reopenAfter), lastReopening)
		s.reopenAt = s.now().Add(s.reopenAfter)
	}
}

// reopen opens the library anew when it is time for that.
func (s *Source) reopen(ctx context.Context) error {
	if s.reopenAt.IsZero() || s.now().Before(s.reopenAt) {
		return nil
	}
	s.reopenAt = time.Time{}
	if err := s.end(); err != nil {
		return err
	}
	return s.begin(ctx)
}
