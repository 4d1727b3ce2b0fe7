// SPDX-License-Identifier: Apache-2.0

// Package lifecycletest holds every component to the same lifecycle.
package lifecycletest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
)

// Test proves that a component can be shut down without having been started, that it starts, does its work and shuts
// down twice, and that it can be made and started anew afterwards. create makes the component, host is what it
// starts on, and use, which may be nil, gives it something to do between start and shutdown.
func Test[C component.Component](t *testing.T, host component.Host, create func(t testing.TB) C, use func(t testing.TB, c C)) {
	t.Helper()
	t.Run("shutdown without start", func(t *testing.T) {
		assert.NoError(t, create(t).Shutdown(t.Context()))
	})
	for _, name := range []string{"start, use, shutdown twice", "once more"} {
		t.Run(name, func(t *testing.T) {
			c := create(t)
			require.NoError(t, c.Start(t.Context(), host))
			if use != nil {
				use(t, c)
			}
			assert.NoError(t, c.Shutdown(t.Context()))
			assert.NoError(t, c.Shutdown(t.Context()))
		})
	}
}
