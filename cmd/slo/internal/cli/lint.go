// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// The formats of --output.
const (
	outputText = "text"
	outputJSON = "json"
)

func newLint() *cobra.Command {
	output := outputText
	cmd := &cobra.Command{
		Use:   "lint PATH…",
		Short: "Say everything that is wrong in SLO files, and what would be right",
		Long: `Say everything that is wrong in SLO files, and what would be right: one problem a line, as file:line: path: message.

These are the checks with which the Collector loads the same files, OTTL expressions included.

What is right, and may be a mistake all the same, is noted on the standard error: a budget that begins in the future.

Exit status: 0 nothing is wrong, 1 something is, 2 the command line is.`,
		Args: somePaths,
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != outputText && output != outputJSON {
				return fmt.Errorf("lint: --output %q is not known: write text or json", output)
			}
			return lint(cmd, args, output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", output, "text, or json: an array of {file, line, path, message}")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{outputText, outputJSON}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// finding is a problem in JSON.
type finding struct {
	File    string `json:"file"`
	Line    int    `json:"line"` // 0 where the file itself is the problem
	Path    string `json:"path"`
	Message string `json:"message"`
}

func lint(cmd *cobra.Command, paths []string, output string) error {
	c, err := load(cmd, paths)
	var ps openslo.Problems
	if err != nil && !errors.As(err, &ps) {
		return err
	}
	if output == outputJSON {
		findings := make([]finding, len(ps))
		for i, p := range ps {
			findings[i] = finding(p)
		}
		enc := json.NewEncoder(cmd.OutOrStdout())
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		if err := enc.Encode(findings); err != nil {
			return err
		}
	} else if len(ps) > 0 {
		fmt.Fprintln(cmd.OutOrStdout(), ps.Error())
	} else {
		fmt.Fprintf(cmd.OutOrStdout(), "nothing is wrong: %s and %s in %s\n", counted(len(c.SLOs), "objective", "objectives"),
			counted(len(c.Policies), "violation policy", "violation policies"), counted(len(c.Files), "file", "files"))
	}
	if len(ps) > 0 {
		return status(problems)
	}
	for _, slo := range c.SLOs {
		if w := slo.TimeWindow; !w.Rolling && w.Start.After(time.Now()) {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s:%d: note: %s has no error budget before %s, when its timeWindow begins\n",
				slo.Position.File, slo.Position.Line, slo.ID, w.Start.Format("2006-01-02 15:04 MST"))
		}
	}
	return nil
}
