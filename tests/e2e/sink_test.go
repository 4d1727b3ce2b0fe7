// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

// sink is an OTLP server that keeps all that it takes, while those who send to it come and go.
type sink struct {
	*httptest.Server
	mu     sync.Mutex
	events []told
	points map[string]history // by series
}

// told is a log event as it came: what it is, and when it came.
type told struct {
	name, id string
	at       time.Time // event time
	heard    time.Time // wall clock
}

// history is what a series was at each event time.
type history map[time.Time]float64

func newSink(t testing.TB) *sink {
	t.Helper()
	s := &sink{points: map[string]history{}}
	mux := http.NewServeMux()
	handle := func(path string, take func(body []byte) error) {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil { // a sender that is killed in the middle
				return
			}
			assert.NoError(t, take(body))
			w.Header().Set("Content-Type", "application/x-protobuf") // an empty answer means that all was taken
		})
	}
	handle("/v1/metrics", func(body []byte) error {
		req := pmetricotlp.NewExportRequest()
		err := req.UnmarshalProto(body)
		s.takeMetrics(req.Metrics())
		return err
	})
	handle("/v1/logs", func(body []byte) error {
		req := plogotlp.NewExportRequest()
		err := req.UnmarshalProto(body)
		s.takeLogs(req.Logs())
		return err
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func (s *sink) takeMetrics(md pmetric.Metrics) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Type() != pmetric.MetricTypeGauge && m.Type() != pmetric.MetricTypeSum {
					continue
				}
				for _, p := range numbers(m).All() {
					key := seriesKey(m.Name(), p.Attributes())
					if s.points[key] == nil {
						s.points[key] = history{}
					}
					s.points[key][p.Timestamp().AsTime()] = number(p)
				}
			}
		}
	}
}

func (s *sink) takeLogs(ld plog.Logs) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, r := range sl.LogRecords().All() {
				id, _ := r.Attributes().Get("slo.violation.id")
				s.events = append(s.events, told{r.EventName(), id.Str(), r.Timestamp().AsTime(), time.Now()})
			}
		}
	}
}

// seriesKey is a metric's name with the attributes of a point, sorted.
func seriesKey(name string, m pcommon.Map) string {
	pairs := make([]string, 0, m.Len())
	for k, v := range m.All() {
		pairs = append(pairs, fmt.Sprintf("%s=%q", k, v.AsString()))
	}
	slices.Sort(pairs)
	return name + "{" + strings.Join(pairs, ",") + "}"
}

// all are the series of a metric whose attributes contain these, given as key, value, …
func (s *sink) all(name string, attrs ...string) map[string]history {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string]history{}
	for key, h := range s.points {
		ok := strings.HasPrefix(key, name+"{")
		for i := 0; ok && i < len(attrs); i += 2 {
			ok = strings.Contains(key, fmt.Sprintf("%s=%q", attrs[i], attrs[i+1]))
		}
		if ok {
			found[key] = maps.Clone(h)
		}
	}
	return found
}

// last is the newest point of the only series that all finds.
func (s *sink) last(t testing.TB, name string, attrs ...string) point {
	t.Helper()
	found := s.all(name, attrs...)
	require.Len(t, found, 1, "%s %v", name, attrs)
	for _, h := range found {
		return h.last()
	}
	return point{}
}

func (h history) last() (newest point) {
	for at, v := range h {
		if !at.Before(newest.at) {
			newest = point{v, at}
		}
	}
	return newest
}

// once are the events with one kept for each name and id, and how many came altogether.
func (s *sink) once() (events map[string]time.Time, came int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	events = map[string]time.Time{}
	for _, e := range s.events {
		events[e.name+" "+e.id] = e.at
	}
	return events, len(s.events)
}

// forget forgets all that came so far.
func (s *sink) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = nil
	clear(s.points)
}

// waitJudged waits until the window that ends at end has its verdict in n series. Events and budgets leave beside it: all of them are
// there when whoever tells them has stopped.
func (s *sink) waitJudged(t testing.TB, end time.Time, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		judged := 0
		for _, h := range s.all("slo.state", "state", "ok") {
			if !h.last().at.Before(end) {
				judged++
			}
		}
		return judged >= n
	}, patience, 50*time.Millisecond, "not all was judged up to %s", end)
}
