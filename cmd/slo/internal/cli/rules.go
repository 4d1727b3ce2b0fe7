// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/otelcol-llm/otelcol-llm/cmd/slo/internal/promrules"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

func newRules() *cobra.Command {
	var opts promrules.Options
	var interval time.Duration
	cmd := &cobra.Command{
		Use:   "rules PATH…",
		Short: "Write SLO files as Prometheus recording and alerting rules",
		Long: `Write SLO files as Prometheus 3 recording and alerting rules, to the standard output.

What Prometheus cannot say, or only nearly, stands as a comment in the rules; what it cannot say at all is told on the
standard error too.

Exit status: 0 fine, 1 something is wrong in the files, 2 the command line is, 3 the rules are written but do not say
everything.`,
		Args: somePaths,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := loadOrSay(cmd, args)
			if err != nil {
				return err
			}
			if interval < 0 {
				return fmt.Errorf("rules: --interval %s is below 0: write e.g. 1m, or leave it out", interval)
			}
			if err := checkKinds(c, opts); err != nil {
				return err
			}
			groups, skipped := promrules.Build(c, opts)
			if err := promrules.Write(cmd.OutOrStdout(), c.Files, groups, skipped, interval); err != nil {
				return err
			}
			for _, s := range skipped {
				fmt.Fprintf(cmd.ErrOrStderr(), "slo: rules: not said: %s\n", s)
			}
			if len(skipped) > 0 {
				return status(incomplete)
			}
			return nil
		},
	}
	cmd.Flags().StringSliceVar(&opts.Histograms, "histogram", nil, "`metric`s that are histograms although they are not in seconds, spelled as in the files")
	cmd.Flags().StringSliceVar(&opts.Gauges, "gauge", nil, "`metric`s that are gauges although they are in seconds or count events, spelled as in the files")
	cmd.Flags().DurationVar(&interval, "interval", 0, "evaluation interval of the groups; 0 is Prometheus's own")
	return cmd
}

// checkKinds tells a metric of --histogram or --gauge that no SLO is made of: it would be a typo.
func checkKinds(c *openslo.Catalog, opts promrules.Options) error {
	var metrics []string
	for i := range c.SLOs {
		for _, s := range c.SLOs[i].Indicator.Selectors() {
			if s.Metric != "" && !slices.Contains(metrics, s.Metric) {
				metrics = append(metrics, s.Metric)
			}
		}
	}
	slices.Sort(metrics)
	for _, flag := range []struct {
		name string
		list []string
	}{{"histogram", opts.Histograms}, {"gauge", opts.Gauges}} {
		for _, m := range flag.list {
			if !slices.Contains(metrics, m) {
				return fmt.Errorf("rules: --%s %s: no SLO is made of it: there are %s", flag.name, m, strings.Join(metrics, ", "))
			}
			if flag.name == "gauge" && slices.Contains(opts.Histograms, m) {
				return fmt.Errorf("rules: %s is both --histogram and --gauge: keep one", m)
			}
		}
	}
	return nil
}
