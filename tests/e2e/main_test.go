// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"flag"
	"os"
	"testing"
)

// atATime is how many tests run at a time: they wait much more than they compute, so it is not for cores to say.
const atATime = "4"

func TestMain(m *testing.M) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		if err := flag.Set("test.parallel", atATime); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
