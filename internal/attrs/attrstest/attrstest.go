// SPDX-License-Identifier: Apache-2.0

// Package attrstest makes attributes as a client can send them, and as pcommon.Map makes none: with a key more than once.
package attrstest

import (
	"encoding/json"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Map has texts under keys, in their order: key, value, key, value.
func Map(pairs ...string) pcommon.Map {
	type attribute struct {
		Key   string            `json:"key"`
		Value map[string]string `json:"value"`
	}
	all := []attribute{}
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, attribute{pairs[i], map[string]string{"stringValue": pairs[i+1]}})
	}
	data, err := json.Marshal(map[string]any{"resourceMetrics": []any{map[string]any{"resource": map[string]any{"attributes": all}}}})
	if err != nil {
		panic(err) // texts have a JSON
	}
	md, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(data)
	if err != nil {
		panic(err)
	}
	return md.ResourceMetrics().At(0).Resource().Attributes()
}

// Pairs are what attributes have, in their order, every copy of a key.
func Pairs(m pcommon.Map) (pairs []string) {
	for k, v := range m.All() {
		pairs = append(pairs, k, v.AsString())
	}
	return pairs
}
