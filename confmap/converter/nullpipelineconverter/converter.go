// SPDX-License-Identifier: Apache-2.0

// Package nullpipelineconverter removes pipelines that are null, so that a later configuration can take one away:
//
//	otelcol-llm --config builtin:all-in-one --config 'yaml:service::pipelines::traces: null'
//
// Merging leaves the null where the pipeline was, and the Collector asks it for a receiver. A null component, by contrast, is
// one with its defaults, and stays.
package nullpipelineconverter

import (
	"context"

	"go.opentelemetry.io/collector/confmap"
)

const (
	service   = "service"
	pipelines = "pipelines"
)

type converter struct{}

// NewFactory returns the factory of the converter.
func NewFactory() confmap.ConverterFactory {
	return confmap.NewConverterFactory(func(confmap.ConverterSettings) confmap.Converter { return converter{} })
}

// Convert removes pipelines that are null. What is not shaped as it should be is the Collector's to say.
func (converter) Convert(_ context.Context, conf *confmap.Conf) error {
	in, _ := conf.Get(service).(map[string]any)
	all, _ := in[pipelines].(map[string]any)
	for name, pipeline := range all {
		if pipeline == nil {
			conf.Delete(service + confmap.KeyDelimiter + pipelines + confmap.KeyDelimiter + name)
		}
	}
	return nil
}
