// SPDX-License-Identifier: Apache-2.0

// Package run lets a fleet live by the wall's clock and serves what a scraper
// sees of it: /metrics and /health for every replica, and /targets and /status
// on a control address.
package run

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/clock"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/engine"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/fault"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/fleet"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/scenario"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/spans"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/trace"
)

const (
	// tick is how often simulated time catches up with the wall's.
	tick = 20 * time.Millisecond
	// stride is the most simulated time that goes by under the lock at once, so
	// that a scrape waits for no more than that when the simulation lags.
	stride = 10 * time.Second
	// closeWithin bounds how long the last spans may take, scrapesWithin scrapes in
	// flight.
	closeWithin   = 15 * time.Second
	scrapesWithin = time.Second
)

// Options are what a simulation is made of.
type Options struct {
	Scenario scenario.Scenario
	Source   trace.Source
	Seed     uint64
	// Speed is simulated seconds per wall second, above 0.
	Speed float64
	// Listen is the first replica's address; the others get the ports after it, or
	// any free ones if its port is 0. Control serves /targets and /status.
	Listen, Control string
	// OTLPEndpoint gets spans, unless it is empty.
	OTLPEndpoint string
}

// Simulation is a running fleet.
type Simulation struct {
	clock    clock.Clock
	faults   fault.Schedule
	exporter *spans.Exporter
	control  net.Listener
	replicas []net.Listener // as in fleet.Replicas

	// mu guards fleet: the ticker advances it, handlers read it.
	mu    sync.Mutex
	fleet *fleet.Fleet

	servers []*http.Server
	stop    chan struct{}
	running sync.WaitGroup
}

// Start binds every address and begins. Close ends it.
func Start(o Options) (*Simulation, error) {
	s := &Simulation{
		clock:  clock.Clock{Start: time.Now(), Speed: o.Speed},
		faults: o.Scenario.Faults,
		stop:   make(chan struct{}),
	}
	if err := s.listen(o); err != nil {
		s.closeListeners()
		return nil, err
	}
	if o.OTLPEndpoint != "" {
		// Ids differ from run to run, or a backend would merge two runs' traces.
		e, err := spans.NewExporter(o.OTLPEndpoint, s.clock, engine.Mix(o.Seed, uint64(s.clock.Start.UnixNano())))
		if err != nil {
			s.closeListeners()
			return nil, err
		}
		s.exporter = e
	}
	s.fleet = fleet.New(o.Scenario, o.Source, o.Seed, s.onFinish())
	s.serve(s.control, s.controlHandler())
	for i, l := range s.replicas {
		s.serve(l, s.replicaHandler(s.fleet.Replicas[i]))
	}
	s.running.Add(1)
	go s.advance()
	return s, nil
}

// Control is the address of /targets and /status.
func (s *Simulation) Control() string { return s.control.Addr().String() }

// Addresses are those of the replicas, in the scenario's order.
func (s *Simulation) Addresses() []string {
	out := make([]string, len(s.replicas))
	for i, l := range s.replicas {
		out[i] = l.Addr().String()
	}
	return out
}

// Close stops time, lets scrapes in flight end and sends the last spans.
func (s *Simulation) Close() error {
	close(s.stop)
	s.closeServers()
	s.running.Wait()
	if s.exporter == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	return s.exporter.Close(ctx)
}

// closeServers cuts off who is not done in time. That is no failure: a client
// may hold a connection on which it never asks, and Shutdown waits for those.
func (s *Simulation) closeServers() {
	ctx, cancel := context.WithTimeout(context.Background(), scrapesWithin)
	defer cancel()
	var closing sync.WaitGroup
	for _, srv := range s.servers {
		closing.Go(func() {
			if srv.Shutdown(ctx) != nil {
				_ = srv.Close()
			}
		})
	}
	closing.Wait()
}

func (s *Simulation) advance() {
	defer s.running.Done()
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-t.C:
		}
		for target := s.clock.Simulated(time.Now()); s.advanceTowards(target); {
			select {
			case <-s.stop:
				return
			default:
			}
		}
	}
}

// advanceTowards goes one stride and says whether there is more to go.
func (s *Simulation) advanceTowards(target time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	to := min(target, s.fleet.Now()+stride)
	s.fleet.AdvanceTo(to)
	return to < target
}

func (s *Simulation) onFinish() func(*fleet.Replica, engine.Record) {
	if s.exporter == nil {
		return nil
	}
	return func(rep *fleet.Replica, r engine.Record) {
		if f, tell := finished(rep, r); tell {
			s.exporter.Add(f)
		}
	}
}

// finished is what spans tell of a request; of aborted ones vLLM tells nothing.
func finished(rep *fleet.Replica, r engine.Record) (spans.Finished, bool) {
	tell := r.Reason != engine.Abort || rep.Replica.Engine.ReportAborts
	return spans.Finished{Record: r, Labels: rep.Labels, Model: rep.Model}, tell
}

func (s *Simulation) listen(o Options) error {
	host, portText, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return fmt.Errorf("listen: %q is no address like 127.0.0.1:8000", o.Listen)
	}
	port, err := strconv.Atoi(portText)
	if err != nil || port < 0 || port+len(o.Scenario.Replicas)-1 > 65535 {
		return fmt.Errorf("listen: port %s: want a number that leaves room for %d ports up to 65535", portText, len(o.Scenario.Replicas))
	}
	if s.control, err = net.Listen("tcp", o.Control); err != nil {
		return fmt.Errorf("control: %w", err)
	}
	for i := range o.Scenario.Replicas {
		p := port
		if port != 0 {
			p += i
		}
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(p)))
		if err != nil {
			return fmt.Errorf("listen: replica %d of %d: %w", i+1, len(o.Scenario.Replicas), err)
		}
		s.replicas = append(s.replicas, l)
	}
	return nil
}

func (s *Simulation) serve(l net.Listener, h http.Handler) {
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	s.servers = append(s.servers, srv)
	s.running.Add(1)
	go func() {
		defer s.running.Done()
		_ = srv.Serve(l) // returns when Close shuts it down
	}()
}

func (s *Simulation) closeListeners() {
	for _, l := range append(s.replicas, s.control) {
		if l != nil {
			_ = l.Close()
		}
	}
}
