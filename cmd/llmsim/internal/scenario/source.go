// SPDX-License-Identifier: Apache-2.0

package scenario

import "github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/trace"

// Source opens the traffic: the trace's rows at their own times, or Poisson
// arrivals. Endless says that it never runs out.
func (s Scenario) Source(seed uint64) (source trace.Source, endless bool, err error) {
	t := s.Traffic
	var rows []trace.Row
	if t.Trace != "" {
		if rows, err = trace.Load(t.Trace); err != nil {
			return nil, false, err
		}
	}
	if t.Rate > 0 || rows == nil {
		rate := t.Rate
		if rate == 0 {
			rate = float64(len(s.Replicas))
		}
		source, endless = trace.Poisson(rate, rows, seed), true
	} else {
		source, endless = trace.Replay(rows, t.Loop), t.Loop
	}
	return trace.WithSharedPrefix(source, t.SharedPrefix, seed), endless, nil
}
