// SPDX-License-Identifier: Apache-2.0

package tenantcheckconverter

import (
	"context"
	"errors"
	"strings"

	"go.opentelemetry.io/collector/confmap"
)

const (
	connectorType = "tenant_routing"
	headersType   = "tenant_headers"
)

type converter struct{}

// NewFactory returns the factory of the converter.
func NewFactory() confmap.ConverterFactory {
	return confmap.NewConverterFactory(func(confmap.ConverterSettings) confmap.Converter { return converter{} })
}

// Convert changes nothing. Its error names every exporter in which tenants would overwrite each other, and every name in a
// tenant_routing connector that is nobody's.
func (converter) Convert(_ context.Context, conf *confmap.Conf) error {
	c := config(conf.ToStringMap())
	return errors.Join(c.overwriting(), c.misnamed())
}

// config is a configuration as it was written. What is not shaped as it should be is the Collector's to say.
type config map[string]any

func (c config) pipelines() map[string]any { return mapAt(c, "service", "pipelines") }

func (c config) pipeline(name string) map[string]any { return mapAt(c.pipelines(), name) }

// typeOf is the type of an id: prometheus of prometheus/tenants, metrics of metrics/out.
func typeOf(id string) string {
	name, _, _ := strings.Cut(id, "/")
	return name
}

// mapAt is the map below some keys, empty where there is none.
func mapAt(m map[string]any, keys ...string) map[string]any {
	for _, key := range keys {
		m, _ = m[key].(map[string]any)
	}
	return m
}

// texts are the texts in a list.
func texts(list any) (all []string) {
	elements, _ := list.([]any)
	for _, e := range elements {
		if text, ok := e.(string); ok {
			all = append(all, text)
		}
	}
	return all
}
