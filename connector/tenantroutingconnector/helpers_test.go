// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"strings"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/confmap/xconfmap"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/attribute"

	"github.com/otelcol-llm/otelcol-llm/internal/attrs/attrstest"
)

type collect = assert.CollectT

func attributeKey(k string) attribute.Key { return attribute.Key(k) }

func validate(cfg *Config) error { return xconfmap.Validate(cfg) }

// put sets attributes that are written as "key=value key=value", also where a key stands there more than once.
func put(attrs pcommon.Map, text string) {
	var pairs []string
	for _, pair := range strings.Fields(text) {
		k, v, _ := strings.Cut(pair, "=")
		pairs = append(pairs, k, v)
	}
	attrstest.Map(pairs...).CopyTo(attrs)
}
