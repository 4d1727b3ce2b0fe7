// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"strings"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/confmap/xconfmap"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/attribute"
)

type collect = assert.CollectT

func attributeKey(k string) attribute.Key { return attribute.Key(k) }

func validate(cfg *Config) error { return xconfmap.Validate(cfg) }

// put sets attributes that are written as "key=value key=value".
func put(attrs pcommon.Map, text string) {
	for _, pair := range strings.Fields(text) {
		k, v, _ := strings.Cut(pair, "=")
		attrs.PutStr(k, v)
	}
}
