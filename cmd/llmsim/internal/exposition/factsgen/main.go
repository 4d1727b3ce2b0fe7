// SPDX-License-Identifier: Apache-2.0

// Command factsgen writes the facts of a Prometheus text exposition as YAML:
//
//	go run ./cmd/llmsim/internal/exposition/factsgen -source "vLLM 0.30.0 /metrics" < dump.txt > facts.yaml
package main

import (
	"flag"
	"fmt"
	"io"
	"os"

	"go.yaml.in/yaml/v3"

	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/exposition/facts"
)

func main() {
	source := flag.String("source", "", "what the dump is a dump of, kept in the file")
	flag.Parse()
	if err := generate(*source, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "factsgen:", err)
		os.Exit(1)
	}
}

func generate(source string, in io.Reader, out io.Writer) error {
	families, err := facts.Parse(in)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, "# SPDX-License-Identifier: Apache-2.0\n# Written by factsgen; facts only, no help sentences and no values.\n"); err != nil {
		return err
	}
	enc := yaml.NewEncoder(out)
	enc.SetIndent(2)
	if err := enc.Encode(facts.File{Source: source, Families: families}); err != nil {
		return err
	}
	return enc.Close()
}
