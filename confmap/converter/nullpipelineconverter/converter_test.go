// SPDX-License-Identifier: Apache-2.0

package nullpipelineconverter

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
)

// Guarantees: a pipeline that is null is gone, and nothing else is.
func TestANullPipelineIsRemoved(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		parse := func(yaml string) *confmap.Conf {
			retrieved, err := confmap.NewRetrievedFromYAML([]byte(yaml))
			require.NoError(t, err)
			conf, err := retrieved.AsConf()
			require.NoError(t, err)
			return conf
		}
		conf := parse(in)
		require.NoError(t, NewFactory().Create(confmap.ConverterSettings{}).Convert(context.Background(), conf))
		assert.Equal(t, parse(want).ToStringMap(), conf.ToStringMap())
	}
	f(`service: {pipelines: {traces: , metrics: {receivers: [a], exporters: [b]}, logs/x: null}}`, `service: {pipelines: {metrics: {receivers: [a], exporters: [b]}}}`)
	f(`{receivers: {otlp: }, service: {pipelines: {traces: {receivers: }}}}`, `{receivers: {otlp: }, service: {pipelines: {traces: {receivers: }}}}`)
	for _, odd := range []string{`{}`, `service:`, `service: 5`, `service: {pipelines: }`, `service: {pipelines: [a]}`} {
		f(odd, odd)
	}
}
