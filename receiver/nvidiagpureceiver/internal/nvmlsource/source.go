// SPDX-License-Identifier: Apache-2.0

package nvmlsource

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/internal/nvml"
)

const (
	// A lost device makes us open the library anew: soon, then ever more seldom, since the Xids of the others that happen in
	// that moment are heard by nobody.
	firstReopening = 10 * time.Second
	lastReopening  = 10 * time.Minute
	// A device without a handle is asked for one so often: that costs the others nothing.
	askAgain = 10 * time.Second
)

// errOver is the error of a session that the driver has ended.
var errOver = errors.New("the driver was unloaded, restarted or changed")

// errClosed is the error of a reading without a session.
var errClosed = errors.New("the source is not open")

// Options say where NVML is.
type Options struct {
	// Library is the path of libnvidia-ml.so.1; empty is the driver's own.
	Library string
	// Listing is the folder in which the kernel's driver lists its GPUs, /proc/driver/nvidia/gpus. NVML knows those that were
	// there when it was opened: it is opened anew when another one is listed. Empty does not look.
	Listing string
	// Look is how often Listing is looked at.
	Look time.Duration
	// Deaf hears which GPUs do not tell Xids, and why, when that is not what it was; it may be nil.
	Deaf func(gpus []string)
}

// Source is a gpu.Source. Its zero value is not ready: use New.
type Source struct {
	opts     Options
	now      func() time.Time
	patience time.Duration // of the wait for Xids
	events   func(gpu.Event)

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
	askAt       time.Time // when devices without a handle are asked for one

	listed []string // in Listing
	lookAt time.Time
	deaf   []string // as Deaf was told
}

// New makes a source that is not open.
func New(opts Options) *Source { return &Source{opts: opts, now: time.Now, patience: patience} }

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
	s.listed = s.gpusListed()
	s.lookAt, s.askAt = s.now().Add(s.opts.Look), s.now().Add(askAgain)
	lib, err := nvml.Open(s.opts.Library)
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
	if !s.findAll(n) {
		return gpu.Unavailable(fmt.Errorf("no GPU of %d can be seen", n))
	}
	s.watcher = watch(lib, s.cards, s.events, s.now, s.patience)
	s.tellDeaf()
	return nil
}

// tellDeaf tells of the GPUs whose Xids cannot be heard.
func (s *Source) tellDeaf() {
	var deaf []string
	for _, c := range s.cards {
		if c.uuid != "" && c.deaf != nvml.OK {
			deaf = append(deaf, c.uuid+": "+c.deaf.String())
		}
	}
	if slices.Equal(deaf, s.deaf) {
		return
	}
	if s.deaf = deaf; s.opts.Deaf != nil && len(deaf) > 0 {
		s.opts.Deaf(deaf)
	}
}

// end gives everything back but what is known of the devices. Xids are heard until the last moment.
func (s *Source) end() error {
	if s.lib == nil {
		return nil
	}
	s.meter.stop()
	for _, c := range s.cards {
		c.release()
	}
	s.watcher.stop()
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
	into.Driver = s.lib.Driver()
	s.plan.make(want)
	var lost, over, answered bool
	for _, c := range s.cards {
		if err := ctx.Err(); err != nil {
			return err
		}
		o := s.readCard(c, into)
		lost = lost || o != nvml.OK
		over = over || o == nvml.Over
		answered = answered || c.here && o != nvml.Over
	}
	if over && (!answered || s.driverIsGone()) {
		return errOver
	}
	s.schedule(lost)
	s.look()
	return s.reopen(ctx)
}

// driverIsGone asks what is about no single GPU: the answers of one may be its own trouble.
func (s *Source) driverIsGone() bool {
	_, o := s.lib.Count()
	return o == nvml.Over
}

// look has the library opened anew when a GPU is listed that was not before, or one can be had again.
func (s *Source) look() {
	if !s.reopenAt.IsZero() && !s.now().Before(s.askAt) {
		s.askAt = s.now().Add(askAgain)
		if slices.ContainsFunc(s.cards, s.isBack) {
			s.reopenAt = s.now()
		}
	}
	if s.opts.Listing == "" || s.now().Before(s.lookAt) {
		return
	}
	s.lookAt = s.now().Add(s.opts.Look)
	was := s.listed
	s.listed = s.gpusListed()
	if slices.ContainsFunc(s.listed, func(name string) bool { return !slices.Contains(was, name) }) {
		s.reopenAt = s.now()
	}
}

// isBack reports whether a GPU that had no handle when the library was opened has one now, and is none of the others.
func (s *Source) isBack(c *card) bool {
	if c.here {
		return false
	}
	dev, o := s.lib.Device(c.index)
	if o != nvml.OK {
		return false
	}
	uuid, o := dev.UUID()
	return o == nvml.OK && !slices.ContainsFunc(s.cards, func(other *card) bool { return other.here && other.uuid == uuid })
}

// gpusListed are the names in Listing; none where it is not there.
func (s *Source) gpusListed() (names []string) {
	if s.opts.Listing == "" {
		return nil
	}
	entries, err := os.ReadDir(s.opts.Listing)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
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

// reopen opens the library anew when it is time for that. It does so behind a reading, and begins the next measurement at once,
// so that the profiling of those that are well has no gap.
func (s *Source) reopen(ctx context.Context) error {
	if s.reopenAt.IsZero() || s.now().Before(s.reopenAt) {
		return nil
	}
	s.reopenAt = time.Time{}
	profiled := slices.ContainsFunc(s.cards, (*card).profiled)
	if err := s.end(); err != nil {
		return err
	}
	if err := s.begin(ctx); err != nil || !profiled {
		return err
	}
	s.plan.make(&gpu.Profiled)
	var nobodys gpu.Snapshot
	for _, c := range s.cards {
		s.readCard(c, &nobodys)
	}
	return nil
}
