// SPDX-License-Identifier: Apache-2.0

// Command demo shows a promise being broken and kept again: it starts a simulated fleet on a production trace and the
// Collector beside it, and tells in plain words what the Collector finds. `make demo` runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

func main() {
	runtime.LockOSThread() // children are tied to the thread that started them; this one lives as long as we do
	limit := flag.Duration("for", 0, "end by itself after this long; 0 goes on until Ctrl-C")
	flag.Parse()
	if err := runFor(*limit); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// runFor runs the demo until a signal, or until the limit, 0 being none.
func runFor(limit time.Duration) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	return run(ctx)
}

// speed is how many simulated seconds pass in one.
const speed = 30

func run(ctx context.Context) error {
	catalog, err := openslo.Load([]string{"demo/slo.yaml"})
	if err != nil {
		return fmt.Errorf("%w\n(run it from the repository's root: make demo)", err)
	}
	data, err := os.MkdirTemp("", "otelcol-llm-demo-")
	if err != nil {
		return err
	}
	p := ports{}
	env := []string{
		"SLO_CATALOG=demo/slo.yaml", "OTELCOL_LLM_DATA=" + data,
		p.env("DEMO_SIMULATOR_PORT", 7999), p.env("DEMO_PROMETHEUS_PORT", 9464), p.env("DEMO_OTLP_GRPC_PORT", 4317),
		p.env("DEMO_OTLP_HTTP_PORT", 4318), p.env("DEMO_HEALTH_PORT", 13133), p.env("DEMO_TELEMETRY_PORT", 8888),
		p.env("DEMO_CONSOLE_PORT", 8686), p.env("DEMO_TSDB_PORT", 9191),
	}
	if err := p.err; err != nil {
		return err
	}
	simulated, whyNot := newGPUs(data)
	if whyNot == nil {
		env = append(env, simulated.env()...)
	}
	control := "127.0.0.1:" + strconv.Itoa(p.port["DEMO_SIMULATOR_PORT"])

	sim, err := start(filepath.Join(data, "llmsim.log"), nil, "bin/llmsim",
		"-scenario", "demo/scenario.yaml", "-speed", strconv.Itoa(speed), "-listen", "127.0.0.1:0", "-control", control)
	if err != nil {
		return err
	}
	defer sim.stop()
	col, err := start(filepath.Join(data, "otelcol-llm.log"), env, "bin/otelcol-llm",
		"--config", "builtin:all-in-one", "--config", "demo/collector.yaml")
	if err != nil {
		return err
	}
	defer col.stop()

	db, err := newDatabase(p.port["DEMO_TSDB_PORT"])
	if err != nil {
		return err
	}
	n := &narrator{
		out: os.Stdout, began: time.Now(), catalog: catalog, events: filepath.Join(data, "slo-events.jsonl"),
		status: "http://" + control + "/status", database: db,
		gpus:    simulated,
		console: fmt.Sprintf("http://localhost:%d/?from=now-15m&refresh=10s", p.port["DEMO_CONSOLE_PORT"]),
	}
	n.welcome()
	n.introduceGPUs(whyNot)
	n.whereToLook(p.port["DEMO_PROMETHEUS_PORT"], p.port["DEMO_TSDB_PORT"], data)
	err = n.tell(ctx, sim, col)
	n.goodbye(data)
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}
