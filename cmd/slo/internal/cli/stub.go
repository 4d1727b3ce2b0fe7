// SPDX-License-Identifier: Apache-2.0

package cli

import "github.com/spf13/cobra"

func newRules() *cobra.Command {
	return &cobra.Command{Use: "rules", RunE: func(cmd *cobra.Command, args []string) error {
		_, err := loadOrSay(cmd, args)
		return err
	}}
}
