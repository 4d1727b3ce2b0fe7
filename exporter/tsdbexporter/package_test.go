// SPDX-License-Identifier: Apache-2.0

package tsdbexporter

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerDirectory); dir != "" {
		writeUntilKilled(dir)
		return
	}
	goleak.VerifyTestMain(m,
		// Started once by a library, for as long as the process runs.
		goleak.IgnoreAnyFunction("go.opencensus.io/stats/view.(*worker).start"))
}
