// SPDX-License-Identifier: Apache-2.0

package gpuguardreceiver

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// sum adds up the points of a counter.
func sum(t testing.TB, m metricdata.Metrics) (all int64) {
	t.Helper()
	data, ok := m.Data.(metricdata.Sum[int64])
	require.True(t, ok)
	for _, p := range data.DataPoints {
		all += p.Value
	}
	return all
}
