// SPDX-License-Identifier: Apache-2.0

// Package cli is llmsim's command line: flags in, a simulation out.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/run"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/scenario"
)

// settings are the flags.
type settings struct {
	scenario, trace string
	speed, rate     float64
	seed            uint64
	listen, control string
	otlpEndpoint    string
	duration        time.Duration
	once, loop      bool
	replica         string
}

func newFlags(s *settings) *flag.FlagSet {
	f := flag.NewFlagSet("llmsim", flag.ContinueOnError)
	f.StringVar(&s.scenario, "scenario", "", "scenario `file`; without one, a single default replica")
	f.StringVar(&s.trace, "trace", "", "trace `file`, Azure CSV or Mooncake JSON lines; wins over the scenario's")
	f.Float64Var(&s.speed, "speed", 1, "simulated seconds per wall second")
	f.Uint64Var(&s.seed, "seed", 1, "decides everything that is drawn")
	f.Float64Var(&s.rate, "rate", 0, "Poisson arrivals per simulated second; 0 replays the trace's times, or, without a trace, draws 1 per replica")
	f.StringVar(&s.listen, "listen", "127.0.0.1:8000", "`address` of the first replica; the next ports follow, port 0 takes any free ones")
	f.StringVar(&s.control, "control", "127.0.0.1:7999", "`address` of /targets and /status")
	f.StringVar(&s.otlpEndpoint, "otlp-endpoint", "", "OTLP/HTTP `URL` for spans, such as http://localhost:4318; empty sends none")
	f.DurationVar(&s.duration, "duration", 0, "stop after this long: wall time, or simulated time with -once; 0 goes on until a signal, or with -once to the trace's end")
	f.BoolVar(&s.once, "once", false, "run as fast as possible and print a replica's final /metrics")
	f.BoolVar(&s.loop, "loop", false, "repeat the trace")
	f.StringVar(&s.replica, "replica", "", "service.instance.id of the replica that -once prints; empty is the first")
	return f
}

// Main runs llmsim until it is done or ctx is, and returns the exit status:
// 0 fine, 1 failed, 2 called wrongly.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var s settings
	flags := newFlags(&s)
	flags.SetOutput(stderr)
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	complain := func(status int, err error) int {
		fmt.Fprintln(stderr, "llmsim:", err)
		return status
	}
	if flags.NArg() > 0 {
		return complain(2, fmt.Errorf("%q: llmsim takes flags only", flags.Arg(0)))
	}
	if err := s.check(); err != nil {
		return complain(2, err)
	}
	options, err := s.options()
	if err != nil {
		return complain(1, err)
	}
	if s.once {
		err = run.Once(ctx, options, s.duration, s.replica, stdout)
	} else {
		err = s.live(ctx, options, stderr)
	}
	if err != nil {
		return complain(1, err)
	}
	return 0
}

func (s settings) check() error {
	var errs []error
	if !(s.speed > 0 && s.speed <= 1e6) {
		errs = append(errs, fmt.Errorf("-speed: %v is not above 0 and at most 1e6", s.speed))
	}
	if !(s.rate >= 0 && s.rate <= 1e6) {
		errs = append(errs, fmt.Errorf("-rate: %v is not in [0, 1e6]", s.rate))
	}
	if s.duration < 0 {
		errs = append(errs, fmt.Errorf("-duration: %v is below 0", s.duration))
	}
	return errors.Join(errs...)
}

// options puts scenario and flags together; flags win.
func (s settings) options() (run.Options, error) {
	sc := scenario.Default()
	if s.scenario != "" {
		var err error
		if sc, err = scenario.Load(s.scenario, s.speed); err != nil {
			return run.Options{}, err
		}
	}
	if s.trace != "" {
		sc.Traffic.Trace = s.trace
	}
	if s.rate > 0 {
		sc.Traffic.Rate = s.rate
	}
	sc.Traffic.Loop = sc.Traffic.Loop || s.loop
	source, endless, err := sc.Source(s.seed)
	if err != nil {
		return run.Options{}, err
	}
	if s.once && endless && s.duration == 0 {
		return run.Options{}, errors.New("-once: this traffic has no end; want -duration as well, or a trace without -rate and -loop")
	}
	return run.Options{
		Scenario: sc, Source: source, Seed: s.seed, Speed: s.speed,
		Listen: s.listen, Control: s.control, OTLPEndpoint: s.otlpEndpoint,
	}, nil
}

func (s settings) live(ctx context.Context, o run.Options, stderr io.Writer) error {
	sim, err := run.Start(o)
	if err != nil {
		return err
	}
	addresses := sim.Addresses()
	fmt.Fprintf(stderr, "llmsim: %d replicas at %s, speed %v; http://%s/targets and /status\n",
		len(addresses), ends(addresses), o.Speed, sim.Control())
	if s.duration > 0 {
		timeout, cancel := context.WithTimeout(ctx, s.duration)
		defer cancel()
		ctx = timeout
	}
	<-ctx.Done()
	return sim.Close()
}

// ends shortens a list of addresses to the first and the last.
func ends(a []string) string {
	if len(a) > 2 {
		return a[0] + " … " + a[len(a)-1]
	}
	return strings.Join(a, ", ")
}
