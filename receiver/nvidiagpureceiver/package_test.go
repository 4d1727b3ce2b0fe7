// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// os/signal keeps one goroutine for as long as the process runs, once a signal was listened to.
		goleak.IgnoreAnyFunction("os/signal.loop"))
}
