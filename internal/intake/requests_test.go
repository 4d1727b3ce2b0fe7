// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-llm/otelcol-llm/internal/tenant"
)

// Guarantees: bytes that are no text in an attribute do not make a state that cannot be read again.
func TestWhatItemsAreToldApartByIsText(t *testing.T) {
	point, none := pcommon.NewMap(), pcommon.NewMap()
	point.PutStr("region", "e\xffu")
	tenants, err := tenant.NewResolver(tenant.DefaultKeys())
	require.NoError(t, err)
	e := &Intake{options: Options{Tenants: tenants}}
	assert.Equal(t, "e\uFFFDu", e.groupValue("region", point, none, none))
}
