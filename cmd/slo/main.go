// SPDX-License-Identifier: Apache-2.0

// Command slo is for people who write SLO files: it checks them, says in plain words what they promise, and writes them
// as Prometheus rules. See README.md.
package main

import (
	"os"

	"github.com/otelcol-llm/otelcol-llm/cmd/slo/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
