// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// settings are the flags.
type settings struct {
	collector, prometheus, promtool, sloth string

	measure, warmUp           time.Duration
	interval, evaluation      time.Duration
	window, history, patience time.Duration
	tenants, models           int
	only                      string
}

func main() {
	var s settings
	flag.StringVar(&s.collector, "otelcol-llm", "bin/otelcol-llm", "the Collector")
	flag.StringVar(&s.prometheus, "prometheus", "", "Prometheus")
	flag.StringVar(&s.promtool, "promtool", "", "promtool")
	flag.StringVar(&s.sloth, "sloth", "", "Sloth")
	flag.DurationVar(&s.measure, "for", 150*time.Second, "how long each peer is measured; a multiple of -interval")
	flag.DurationVar(&s.warmUp, "warm-up", time.Minute, "how long each peer runs before")
	flag.DurationVar(&s.interval, "interval", 15*time.Second, "scrape interval")
	flag.DurationVar(&s.evaluation, "evaluation", 15*time.Second, "evaluation interval of Prometheus' rules")
	flag.DurationVar(&s.window, "window", time.Minute, "evaluation window of the Collector's promises")
	flag.DurationVar(&s.history, "history", 7*time.Hour, "the past that Prometheus knows of the series with the fault; 0 is none")
	flag.DurationVar(&s.patience, "patience", 20*time.Minute, "how long to wait for an alert")
	flag.IntVar(&s.tenants, "tenants", 20, "tenants, an endpoint each")
	flag.IntVar(&s.models, "models", 10, "models a tenant has, with five promises and 95 series each")
	flag.StringVar(&s.only, "only", "", "measure this peer only: a to e")
	flag.Parse()
	if err := s.run(); err != nil {
		fmt.Fprintln(os.Stderr, "slo-vs-prometheus:", err)
		os.Exit(1)
	}
}

// peer is one of those compared.
type peer struct {
	letter, name string
	start        func(*run) (*process, error)
	check        func(*run) error
	alarms       []string // what it sends when a promise is broken
	held         bool     // to the targets
}

var peers = []peer{
	{"a", "Prometheus, scraping only", prometheusScraping, checkScraped, nil, false},
	{"b", "Prometheus with Sloth's rules", prometheusWithSloth, checkRules, []string{pageAlert}, false},
	{"c", "otelcol-llm with slo, results sent by OTLP", collectorPushing, checkJudged, []string{opened, violated, burning}, true},
	{"d", "otelcol-llm, scraping only", collectorScraping, checkReceived, nil, false},
	{"e", "otelcol-llm with slo, results scraped from it", collectorScraped, checkJudged, []string{opened, violated, burning}, false},
}

func (s settings) run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop() // what was started is ended in any case
	if err := s.prepare(); err != nil {
		return err
	}
	results := map[string]result{}
	for _, p := range peers {
		if s.only != "" && s.only != p.letter {
			continue
		}
		fmt.Fprintf(os.Stderr, "(%s) %s …\n", p.letter, p.name)
		r, err := s.measurePeer(ctx, p)
		if err != nil {
			return fmt.Errorf("(%s) %s: %w", p.letter, p.name, err)
		}
		results[p.letter] = r
	}
	return s.report(os.Stdout, results)
}

// run is one peer's turn.
type run struct {
	settings
	dir                 string
	promises            []promise
	endpoints           *endpoints
	alarms              *alarms
	badTenant, badModel int
	api                 string   // URL of what the peer says of itself
	verdicts            verdicts // that arrived
	ends                []func()
}

// result is what came of it.
type result struct {
	cpu     float64 // seconds
	peak    float64 // MB
	scrapes int64
	broken  time.Time // when the fault began
	alarms  map[string]alarm
}

func (s settings) measurePeer(ctx context.Context, p peer) (result, error) {
	dir, err := os.MkdirTemp("", "slo-vs-prometheus-")
	if err != nil {
		return result{}, err
	}
	r := &run{settings: s, dir: dir, promises: promises(s.models), badTenant: s.tenants / 2, badModel: s.models / 2}
	defer r.end()
	r.atEnd(func() { _ = os.RemoveAll(dir) })
	r.alarms = newAlarms(tenantName(r.badTenant), r.promises[r.badModel*len(kinds)])
	if r.endpoints, err = serve(&workload{tenants: s.tenants, models: s.models, began: time.Now().Add(-s.history)}); err != nil {
		return result{}, err
	}
	r.atEnd(r.endpoints.close)
	process, err := p.start(r)
	if process != nil {
		r.atEnd(process.stop)
	}
	if err != nil {
		return result{}, err
	}
	if err := sleep(ctx, s.warmUp); err != nil {
		return result{}, err
	}
	out := result{alarms: map[string]alarm{}}
	before, err := process.cpuSeconds()
	if err != nil {
		return result{}, process.complain(err)
	}
	scrapes := r.endpoints.scrapes.Load()
	if err := sleep(ctx, s.measure/2); err != nil {
		return result{}, err
	}
	out.broken = r.endpoints.breakNow(r.badTenant, r.badModel)
	if err := sleep(ctx, s.measure-s.measure/2); err != nil {
		return result{}, err
	}
	after, err := process.cpuSeconds()
	if err != nil {
		return result{}, process.complain(err)
	}
	out.scrapes = r.endpoints.scrapes.Load() - scrapes
	out.cpu = after - before
	if out.peak, err = process.peakMB(); err != nil {
		return result{}, err
	}
	if err := p.check(r); err != nil {
		return result{}, process.complain(err)
	}
	return out, r.await(ctx, p.alarms, &out)
}

// await waits until all alarms are there.
func (r *run) await(ctx context.Context, names []string, out *result) error {
	for deadline := time.Now().Add(r.patience); len(out.alarms) < len(names); {
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
		for _, name := range names {
			a, heard := r.alarms.heard(name)
			switch {
			case heard && a.at.Before(out.broken):
				return fmt.Errorf("%s: there before the fault", name)
			case heard:
				out.alarms[name] = a
			case time.Now().After(deadline):
				return fmt.Errorf("%s: nothing within %s", name, r.patience)
			}
		}
	}
	return nil
}

// sleep waits, unless the program is told to end.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// atEnd notes what to do when the turn is over; the last comes first.
func (r *run) atEnd(do func()) { r.ends = append(r.ends, do) }

func (r *run) end() {
	for i := len(r.ends) - 1; i >= 0; i-- {
		r.ends[i]()
	}
}

// every calls do until the turn is over.
func (r *run) every(d time.Duration, do func()) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(d)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
				do()
			}
		}
	}()
	r.atEnd(func() {
		close(stop)
		<-stopped
	})
}

// prepare checks the flags.
func (s *settings) prepare() error {
	var errs []error
	for _, path := range []*string{&s.collector, &s.prometheus, &s.promtool, &s.sloth} {
		absolute, err := filepath.Abs(*path)
		if err == nil {
			_, err = os.Stat(absolute)
		}
		*path = absolute
		errs = append(errs, err)
	}
	if s.measure%s.interval != 0 {
		errs = append(errs, fmt.Errorf("-for: %s is not a multiple of the interval of %s", s.measure, s.interval))
	}
	return errors.Join(errs...)
}
