// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu/fakegputest"
)

// withFakes are the tests of a package that has fakes of NVIDIA's libraries.
type withFakes struct{ *testing.M }

func (m withFakes) Run() int { return fakegputest.Main(m.M) }

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(withFakes{m},
		// os/signal keeps one goroutine for as long as the process runs, once a signal was listened to.
		goleak.IgnoreAnyFunction("os/signal.loop"))
}
