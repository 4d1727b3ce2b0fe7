// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Guarantees: bytes that are no text in an attribute do not make a state that cannot be read again.
func TestWhatItemsAreToldApartByIsText(t *testing.T) {
	point, none := pcommon.NewMap(), pcommon.NewMap()
	point.PutStr("region", "e\xffu")
	e := &Intake{}
	assert.Equal(t, "e\uFFFDu", e.groupValue("region", point, none, none))
}
