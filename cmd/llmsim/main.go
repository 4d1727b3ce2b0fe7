// SPDX-License-Identifier: Apache-2.0

// Command llmsim is a serving engine simulator that speaks vLLM's /metrics and
// OTLP: demo, tests, load. See README.md.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := cli.Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}
