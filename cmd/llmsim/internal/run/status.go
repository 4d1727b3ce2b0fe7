// SPDX-License-Identifier: Apache-2.0

package run

import (
	"time"

	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/engine"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/fault"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/scenario"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/spans"
)

// Status is the document at /status.
type Status struct {
	Started          time.Time `json:"started"`
	Speed            float64   `json:"speed"`
	SimulatedSeconds float64   `json:"simulated_seconds"`
	// LagSeconds is the simulated time that should have gone by but has not: above
	// a second or so this machine is too slow for the speed.
	LagSeconds float64 `json:"lag_seconds"`
	// TrafficDone says that no more arrivals come and all have ended.
	TrafficDone  bool            `json:"traffic_done"`
	Requests     Requests        `json:"requests"`
	Replicas     []ReplicaStatus `json:"replicas"`
	ActiveFaults []FaultStatus   `json:"active_faults"`
	NextFaults   []FaultStatus   `json:"next_faults"`
	Spans        *spans.Counts   `json:"spans,omitempty"`
}

// Requests add up: arrived = refused + Σ finished + running + waiting. Aborted
// ones are among the finished here, even where /metrics leaves them out.
type Requests struct {
	Arrived  uint64            `json:"arrived"`
	Refused  uint64            `json:"refused"`
	Running  int               `json:"running"`
	Waiting  int               `json:"waiting"`
	Finished map[string]uint64 `json:"finished"`
}

// ReplicaStatus is one replica.
type ReplicaStatus struct {
	ID           string            `json:"id"`
	Address      string            `json:"address"`
	Labels       map[string]string `json:"labels"`
	Requests     Requests          `json:"requests"`
	KVCacheUsage float64           `json:"kv_cache_usage"`
	Preemptions  uint64            `json:"preemptions"`
	// LeakedBytes is the memory of its GPU that leak faults hold.
	LeakedBytes uint64 `json:"leaked_bytes,omitempty"`
}

// FaultStatus is an active fault, or a change that is to come, in wall time.
type FaultStatus struct {
	Kind  string            `json:"kind"`
	Match map[string]string `json:"match"`
	// Change is begin or end for what is to come; empty for an active fault.
	Change string `json:"change,omitempty"`
	// At is when the change comes, or when the active fault began.
	At               time.Time `json:"at"`
	SimulatedSeconds float64   `json:"simulated_seconds"`
	// Until is when an active fault ends, if it does.
	Until *time.Time `json:"until,omitempty"`
}

// Status says how the simulation stands.
func (s *Simulation) Status() Status {
	s.mu.Lock()
	now, done, arrived := s.fleet.Now(), s.fleet.Done(), s.fleet.Arrived()
	stats, leaked := make([]engine.Stats, len(s.fleet.Replicas)), make([]float64, len(s.fleet.Replicas))
	for i, r := range s.fleet.Replicas {
		stats[i], leaked[i] = r.Engine.Stats(), r.Engine.Leaked(now)
	}
	s.mu.Unlock()

	out := Status{
		Started: s.clock.Start, Speed: s.clock.Speed,
		SimulatedSeconds: now.Seconds(),
		LagSeconds:       max(0, (s.clock.Simulated(time.Now()) - now).Seconds()),
		TrafficDone:      done,
		Requests:         Requests{Finished: map[string]uint64{}},
		ActiveFaults:     s.activeFaults(now),
		NextFaults:       s.nextFaults(now),
	}
	for i, st := range stats {
		rep := s.fleet.Replicas[i]
		one := ReplicaStatus{
			ID: rep.Labels[scenario.InstanceLabel], Address: s.replicas[i].Addr().String(), Labels: rep.Labels,
			Requests:     requestsOf(st),
			KVCacheUsage: 1 - float64(st.FreeBlocks)/float64(st.TotalBlocks),
			Preemptions:  st.Preemptions,
			LeakedBytes:  uint64(leaked[i]),
		}
		out.Replicas = append(out.Replicas, one)
		out.Requests.add(one.Requests)
	}
	out.Requests.Arrived = arrived
	if s.exporter != nil {
		c := s.exporter.Counts()
		out.Spans = &c
	}
	return out
}

func requestsOf(st engine.Stats) Requests {
	r := Requests{Arrived: st.Submitted, Refused: st.Refused, Running: st.Running, Waiting: st.Waiting, Finished: map[string]uint64{}}
	for reason, n := range st.Finished {
		r.Finished[engine.Reason(reason).String()] = n
	}
	return r
}

func (r *Requests) add(o Requests) {
	r.Refused += o.Refused
	r.Running += o.Running
	r.Waiting += o.Waiting
	for k, n := range o.Finished {
		r.Finished[k] += n
	}
}

func (s *Simulation) activeFaults(now time.Duration) []FaultStatus {
	out := []FaultStatus{}
	for _, f := range s.faults {
		if !f.Active(now) {
			continue
		}
		fs := s.faultStatus(f, f.From)
		if f.Until != engine.Never {
			until := s.clock.Wall(f.Until)
			fs.Until = &until
		}
		out = append(out, fs)
	}
	return out
}

func (s *Simulation) nextFaults(now time.Duration) []FaultStatus {
	out := []FaultStatus{}
	for _, c := range s.faults.After(now) {
		fs := s.faultStatus(c.Fault, c.At)
		fs.Change = "end"
		if c.Begin {
			fs.Change = "begin"
		}
		out = append(out, fs)
	}
	return out
}

func (s *Simulation) faultStatus(f fault.Fault, at time.Duration) FaultStatus {
	return FaultStatus{Kind: f.Kind, Match: f.Match, At: s.clock.Wall(at), SimulatedSeconds: at.Seconds()}
}
