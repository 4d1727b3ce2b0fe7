// SPDX-License-Identifier: Apache-2.0

package sloschemaprocessor

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
)

// FuzzProcess sends any OTLP. Guarantees: nothing panics, a point is lost only where it is unknown and to be dropped, and
// no point loses an attribute but those that were translated.
func FuzzProcess(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "golden", "*.in.yaml"))
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range files {
		md, err := golden.ReadMetrics(file)
		require.NoError(f, err)
		data, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
		require.NoError(f, err)
		for how := range uint8(6) {
			f.Add(data, how)
		}
	}
	docs := parse(f, chatDocs)
	f.Fuzz(func(t *testing.T, data []byte, how uint8) {
		md, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(data)
		if err != nil {
			return // it is no OTLP
		}
		action, keepAll := []OnUnknown{Keep, Tag, Drop}[how%3], how%2 == 0
		r := newRig(t, docs, func(c *Config) { c.OnUnknown, c.MaxDialectSLOs, c.KeepDialectLabels = action, 2, keepAll })
		points, attributes := md.DataPointCount(), attributeCount(md)
		_, _ = r.process(t.Context(), md)
		if action == Drop {
			for _, n := range r.counted("points_unknown") {
				points -= int(n)
			}
		} else if keepAll {
			require.GreaterOrEqual(t, attributeCount(md), attributes)
		}
		require.Equal(t, points, md.DataPointCount())
	})
}

func attributeCount(md pmetric.Metrics) (n int) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				each(m, func(a pcommon.Map) { n += a.Len() })
			}
		}
	}
	return n
}
