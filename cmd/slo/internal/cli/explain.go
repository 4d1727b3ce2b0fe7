// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/otelcol-llm/otelcol-llm/cmd/slo/internal/explain"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

func newExplain() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "explain PATH…",
		Short: "Say in plain words what SLO files promise",
		Long: `Say in plain words what SLO files promise: what counts as good, for whom, how much may go wrong, who is told when, which
bucket boundary is needed, and how many series it costs.

Exit status: 0 fine, 1 something is wrong in the files, 2 the command line is.`,
		Args: somePaths,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := loadOrSay(cmd, args)
			if err != nil {
				return err
			}
			wanted := func(slo *openslo.SLO) bool { return name == "" || slo.Name == name || slo.ID == name }
			if !slices.ContainsFunc(c.SLOs, func(slo openslo.SLO) bool { return wanted(&slo) }) {
				if name == "" {
					fmt.Fprintln(cmd.ErrOrStderr(), "slo: explain: there is no SLO in the files")
					return nil
				}
				return fmt.Errorf("explain: no SLO has the name or slo_id %q: there are %s", name, strings.Join(names(c), ", "))
			}
			explain.Write(cmd.OutOrStdout(), c, wanted)
			return nil
		},
	}
	cmd.Flags().StringVar(&name, "slo", "", "explain only the SLO of this metadata.name or slo_id")
	_ = cmd.RegisterFlagCompletionFunc("slo", func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		c, err := load(cmd, args)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names(c), cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

// names are the names of a catalog's SLO documents, sorted.
func names(c *openslo.Catalog) []string {
	var all []string
	for i := range c.SLOs {
		all = append(all, c.SLOs[i].Name)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
