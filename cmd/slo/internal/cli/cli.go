// SPDX-License-Identifier: Apache-2.0

// Package cli is slo's command line: paths in, problems, words or rules out.
package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/otelcol-llm/otelcol-llm/extension/slocatalogextension/samples"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/selection"
)

// The exit statuses.
const (
	fine       = 0
	problems   = 1 // in the files
	misuse     = 2 // of the command line
	incomplete = 3 // slo rules: something cannot be said in Prometheus
)

// status is an error whose exit status is not misuse. What there was to say about it has been said.
type status int

func (s status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// Main runs slo and returns the exit status.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot(stdin, stdout, stderr)
	root.SetArgs(append([]string{}, args...)) // nil would mean the arguments of the process
	err := root.Execute()
	var s status
	switch {
	case err == nil:
		return fine
	case errors.As(err, &s):
		return int(s)
	}
	fmt.Fprintf(stderr, "slo: %v\n", err)
	return misuse
}

func newRoot(stdin io.Reader, stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "slo",
		Short: "Check, understand and export SLO files",
		Long: `slo is for people who write SLO files: OpenSLO v1 documents and ViolationPolicy documents.

A PATH is a file, a glob, a directory, builtin:NAME for a sample that comes with the distribution, or - for the standard
input. All paths of a call make up one catalog: a name in one file may refer to a document in another.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_ = cmd.Help()
			return errors.New("say what to do: lint, explain, rules or completion")
		},
	}
	root.SetIn(stdin)
	root.SetOut(stdout) // before the completion command, which remembers it
	root.SetErr(stderr)
	root.AddCommand(newLint(), newExplain(), newRules())
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.RunE = func(*cobra.Command, []string) error {
				return errors.New("completion: say for which shell: bash, zsh, fish or powershell")
			}
		}
	}
	return root
}

// somePaths is cobra.MinimumNArgs(1) in words that help.
func somePaths(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%s: no PATH: name files, globs or directories, builtin:vllm, or - for the standard input", cmd.Name())
	}
	return nil
}

// stdinName is what the standard input is called in problems.
const stdinName = "stdin"

// load reads the catalog that paths lead to, with everything that the Collector would check too.
func load(cmd *cobra.Command, paths []string) (*openslo.Catalog, error) {
	opts, err := selection.Checked()
	if err != nil {
		return nil, err
	}
	files, sources, err := samples.Resolve(paths)
	if err != nil {
		return nil, err
	}
	var named []string
	read := false
	for _, file := range files {
		if file != "-" {
			named = append(named, file)
			continue
		}
		if read {
			continue
		}
		read = true
		data, err := io.ReadAll(cmd.InOrStdin())
		if err != nil {
			return nil, fmt.Errorf("standard input: %w", err)
		}
		sources = append(sources, openslo.Source{Name: stdinName, Data: data})
	}
	return openslo.LoadWith(opts, named, sources...)
}

// loadOrSay is load for commands that need a catalog without problems: those are told.
func loadOrSay(cmd *cobra.Command, paths []string) (*openslo.Catalog, error) {
	c, err := load(cmd, paths)
	var ps openslo.Problems
	if errors.As(err, &ps) {
		fmt.Fprintln(cmd.ErrOrStderr(), ps.Error())
		return nil, status(problems)
	}
	return c, err
}

// counted is a number with its noun.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
