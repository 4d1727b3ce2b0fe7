// SPDX-License-Identifier: Apache-2.0

package store

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// registry is that of the TSDB. It keeps hold of the counter of chunks, which is asked for at every write.
type registry struct {
	*prometheus.Registry
	chunks prometheus.Counter
}

// MustRegister implements prometheus.Registerer.
func (r *registry) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		if counter, ok := c.(prometheus.Counter); ok && strings.Contains(counter.Desc().String(), `"prometheus_tsdb_head_chunks_created_total"`) {
			r.chunks = counter
		}
	}
	r.Registry.MustRegister(all...)
}

// made is how many chunks the head has begun. The TSDB counts each as it ends the one before, so no more than that are full.
func (s *Store) made() int64 {
	var m dto.Metric
	if err := s.chunks.Write(&m); err != nil {
		return 0 // a counter has no error
	}
	return int64(m.GetCounter().GetValue())
}
