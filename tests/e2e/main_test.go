// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"flag"
	"os"
	"testing"
	"time"
)

// patience is how long anything is waited for that has to come. It says nothing of how long that takes: nothing here is judged by a
// clock, since whoever runs these tests may stand still for seconds at any moment.
const patience = 2 * time.Minute

// turns are how many tests run at a time, whatever cores there are: they wait much more than they compute. Beside them is the demo,
// which takes as long as all of them: it begins at once, so go test itself lets as many run as there are.
var turns = make(chan struct{}, 3)

func TestMain(m *testing.M) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		if err := flag.Set("test.parallel", "1000"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// parallel lets a test run beside others when it is its turn. One whose subtests take turns must not have one itself.
func parallel(t *testing.T) {
	t.Helper()
	t.Parallel()
	turns <- struct{}{}
	t.Cleanup(func() { <-turns })
}
