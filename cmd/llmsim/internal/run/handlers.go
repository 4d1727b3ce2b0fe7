// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"

	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/exposition"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/fleet"
)

// replicaHandler is what one engine serves.
func (s *Simulation) replicaHandler(rep *fleet.Replica) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", health)
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		stats := rep.Engine.Stats()
		s.mu.Unlock()
		var b bytes.Buffer
		if err := exposition.Write(&b, exposition.Identity{Model: rep.Model, Start: s.clock.Start}, stats); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", exposition.ContentType)
		_, _ = w.Write(b.Bytes())
	})
	return mux
}

// controlHandler is about the fleet.
func (s *Simulation) controlHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", health)
	mux.HandleFunc("GET /targets", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, s.targets(r.Host))
	})
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, s.Status())
	})
	return mux
}

// targetGroup is one element of Prometheus' HTTP service discovery.
type targetGroup struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// targets lists the replicas. A replica that listens on every address is named
// as the asker named us.
func (s *Simulation) targets(askedAt string) []targetGroup {
	out := make([]targetGroup, len(s.replicas))
	for i, l := range s.replicas {
		address := l.Addr().String()
		if host, port, err := net.SplitHostPort(address); err == nil && net.ParseIP(host).IsUnspecified() {
			if asked, _, err := net.SplitHostPort(askedAt); err == nil {
				address = net.JoinHostPort(asked, port)
			}
		}
		out[i] = targetGroup{Targets: []string{address}, Labels: s.fleet.Replicas[i].Labels}
	}
	return out
}

func health(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v)
}
