// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if asChild() {
		return
	}
	goleak.VerifyTestMain(m)
}
