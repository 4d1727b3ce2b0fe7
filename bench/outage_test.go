// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

const (
	othersInOutage = 5                     // tenants beside the one whose destination fails
	window         = 8                     // requests of each that are on their way at most
	pointsSent     = 100                   // in a request
	sendEvery      = 20 * time.Millisecond // between two requests of each: 25,000 points a second of the others
	outageRounds   = 5
	// A destination fails and is well in turn, so many times in a round, so that what else the machine does meets both alike.
	outageTurns = 6
	settling    = 50 * time.Millisecond // before a turn is measured
	turn        = 500 * time.Millisecond
)

// outageModes are the ways in which a destination fails; "well" is none, and says how far two
// phases differ for no reason.
var outageModes = []string{"well", "429", "500", "hangs", "gone"}

// failing is a destination of all tenants that fails for the one called sick.
type failing struct {
	*httptest.Server
	b testing.TB

	mu    sync.Mutex
	mode  string
	heals chan struct{} // closed when the mode ends
	sick  int           // its requests that came
	came  []arrival     // of the others, since the mode was begun
	next  map[string]chan struct{}
}

// arrival is when a request came, and how long after it was sent.
type arrival struct {
	at    time.Time
	delay time.Duration
}

func newFailing(b testing.TB) *failing {
	f := &failing{b: b, mode: "well", heals: make(chan struct{}), next: map[string]chan struct{}{}}
	for i := range othersInOutage {
		f.next[other(i)] = make(chan struct{}, window)
	}
	f.Server = httptest.NewServer(f)
	b.Cleanup(f.Close)
	return f
}

func other(i int) string { return fmt.Sprintf("other-%d", i) }

// ServeHTTP takes a request, or fails.
func (f *failing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	tenant := r.Header.Get("X-Scope-OrgID")
	if tenant == "sick" {
		f.mu.Lock()
		mode, heals := f.mode, f.heals
		if mode == "well" {
			f.sick++
		}
		f.mu.Unlock()
		switch mode {
		case "429":
			w.WriteHeader(http.StatusTooManyRequests)
		case "500":
			w.WriteHeader(http.StatusInternalServerError)
		case "hangs":
			select {
			case <-heals:
			case <-r.Context().Done():
			}
			w.WriteHeader(http.StatusServiceUnavailable)
		case "gone":
			if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
				_ = conn.Close()
			}
		}
		return
	}
	next, ok := f.next[tenant]
	if !ok { // what the gateway says of itself
		return
	}
	req := pmetricotlp.NewExportRequest()
	if err := req.UnmarshalProto(body); err != nil || req.Metrics().DataPointCount() != pointsSent {
		f.b.Errorf("%s: %d points, %v", tenant, req.Metrics().DataPointCount(), err)
		return
	}
	sent, _ := req.Metrics().ResourceMetrics().At(0).Resource().Attributes().Get("sent")
	now := time.Now()
	f.mu.Lock()
	f.came = append(f.came, arrival{now, time.Duration(now.UnixNano() - sent.Int())})
	f.mu.Unlock()
	<-next
}

func (f *failing) turn(mode string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.heals)
	f.heals = make(chan struct{})
	f.mode = mode
}

// senders send to a gateway at a steady pace, the others as long as what they send arrives.
type senders struct {
	b    testing.TB
	url  string
	done chan struct{}
	all  sync.WaitGroup

	mu       sync.Mutex
	accepted []time.Time // of the others' requests
	sick     int
}

func (s *senders) start(f *failing) {
	for i := range othersInOutage {
		s.all.Go(func() {
			s.pace(func() {
				select {
				case <-s.done:
					return
				case f.next[other(i)] <- struct{}{}:
				}
				s.send(other(i))
				s.mu.Lock()
				s.accepted = append(s.accepted, time.Now())
				s.mu.Unlock()
			})
		})
	}
	s.all.Go(func() {
		s.pace(func() {
			s.send("sick")
			s.mu.Lock()
			s.sick++
			s.mu.Unlock()
		})
	})
}

func (s *senders) pace(send func()) {
	every := time.NewTicker(sendEvery)
	defer every.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-every.C:
			send()
		}
	}
}

func (s *senders) send(tenant string) {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	now := time.Now()
	rm.Resource().Attributes().PutStr("k8s.namespace.name", tenant)
	rm.Resource().Attributes().PutInt("sent", now.UnixNano())
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("requests")
	ps := m.SetEmptyGauge().DataPoints()
	for i := range pointsSent {
		p := ps.AppendEmpty()
		p.SetTimestamp(pcommon.NewTimestampFromTime(now))
		p.SetIntValue(int64(i))
		p.Attributes().PutInt("engine", int64(i))
	}
	body, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
	if err != nil {
		s.b.Error(err)
		return
	}
	resp, err := http.Post(s.url, "application/x-protobuf", bytes.NewReader(body))
	if err != nil {
		s.b.Error(err)
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		s.b.Errorf("%s: %s", tenant, resp.Status)
	}
}

// phase is what the others got through while the one's destination was in a mode.
type phase struct {
	accepted, delivered float64 // points a second
	p50, p99            time.Duration
	cpu                 float64 // seconds of the gateway for a delivered point
}

// pair is a phase with the one in which all was well, in turn with it.
type pair struct{ well, failing phase }

// measure runs a mode in turn with all being well, and waits afterwards until all of the one's has arrived, so that each begins alike.
func (s *senders) measure(f *failing, gateway int, mode string) (pairs []pair) {
	var turns [2][]interval
	for i := range 2 * outageTurns {
		which := (i + i/2) % 2 // well, failing, failing, well, …
		f.turn([]string{"well", mode}[which])
		time.Sleep(settling)
		begin, cpu := time.Now(), cpuTime(s.b, gateway)
		time.Sleep(turn)
		turns[which] = append(turns[which], interval{begin, time.Now(), cpuTime(s.b, gateway) - cpu})
	}
	f.turn("well")
	f.mu.Lock()
	came := f.came
	f.came = nil
	f.mu.Unlock()
	s.mu.Lock()
	accepted := s.accepted
	s.accepted = nil
	s.mu.Unlock()
	require.Eventually(s.b, func() bool {
		s.mu.Lock()
		sent := s.sick
		s.mu.Unlock()
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.sick >= sent
	}, 30*time.Second, time.Millisecond, "what waited does not arrive")
	for i := range outageTurns {
		pairs = append(pairs, pair{phaseOf(turns[0][i], came, accepted), phaseOf(turns[1][i], came, accepted)})
	}
	return pairs
}

// interval is a turn, and the CPU time of the gateway in it.
type interval struct {
	begin, end time.Time
	cpu        time.Duration
}

func (i interval) has(at time.Time) bool { return !at.Before(i.begin) && at.Before(i.end) }

func phaseOf(i interval, came []arrival, accepted []time.Time) phase {
	delays := []time.Duration{0}
	for _, a := range came {
		if i.has(a.at) {
			delays = append(delays, a.delay)
		}
	}
	taken := 0
	for _, at := range accepted {
		if i.has(at) {
			taken++
		}
	}
	slices.Sort(delays)
	delivered, seconds := float64(pointsSent*(len(delays)-1)), i.end.Sub(i.begin).Seconds()
	return phase{float64(pointsSent*taken) / seconds, delivered / seconds, delays[len(delays)/2], delays[len(delays)*99/100], i.cpu.Seconds() / delivered}
}

// BenchmarkOutage is what a gateway takes from five tenants and delivers for them while the destination of a sixth answers 429 or 500,
// hangs, or is gone, in turn with all being well. Each tenant has a queue on the disk. It prints a table: the medians of all turns, and those of
// the ratios to the turn beside in which all was well.
func BenchmarkOutage(b *testing.B) {
	for b.Loop() {
		f := newFailing(b)
		endpoint := spawn.FreeEndpoint(b)
		configs := []string{"builtin:gateway"}
		for path, value := range map[string]string{
			"receivers::otlp::protocols::grpc::endpoint": spawn.FreeEndpoint(b),
			"receivers::otlp::protocols::http::endpoint": endpoint,
			"extensions::health_check::endpoint":         spawn.FreeEndpoint(b),
			"extensions::console::endpoint":              spawn.FreeEndpoint(b),
			"service::telemetry::metrics::level":         "none",
			"exporters::otlp_http/metrics::compression":  "none",
			// The one's consumers are as busy as they can be.
			"connectors::tenant_routing::retry_on_failure": "{initial_interval: 50ms, max_interval: 200ms}",
		} {
			configs = append(configs, fmt.Sprintf("yaml:%s: %s", path, value))
		}
		c := spawn.Start(b, spawn.Options{Configs: configs, Env: []string{"METRICS_ENDPOINT=" + f.URL}})
		c.WaitReady()
		s := &senders{b: b, url: "http://" + endpoint + "/v1/metrics", done: make(chan struct{})}
		s.start(f)
		s.measure(f, c.PID(), "well") // warm
		pairs := map[string][]pair{}
		for i := range outageRounds {
			for k := range outageModes {
				mode := outageModes[(i+k)%len(outageModes)]
				pairs[mode] = append(pairs[mode], s.measure(f, c.PID(), mode)...)
			}
		}
		close(s.done)
		for i := range othersInOutage { // whoever waits for room ends
			for len(f.next[other(i)]) > 0 {
				time.Sleep(time.Millisecond)
			}
		}
		s.all.Wait()
		c.Stop()
		tell(b, pairs)
	}
}

func tell(b *testing.B, pairs map[string][]pair) {
	b.Helper()
	median := func(mode string, of func(pair) float64) float64 {
		var all []float64
		for _, p := range pairs[mode] {
			all = append(all, of(p))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	columns := []struct {
		name, format string
		of           func(phase) float64
	}{
		{"points a second accepted", "%.0f", func(p phase) float64 { return p.accepted }},
		{"delivered", "%.0f", func(p phase) float64 { return p.delivered }},
		{"median delay", "%.1f ms", func(p phase) float64 { return float64(p.p50) / 1e6 }},
		{"99th percentile", "%.1f ms", func(p phase) float64 { return float64(p.p99) / 1e6 }},
		{"CPU a point", "%.1f µs", func(p phase) float64 { return p.cpu * 1e6 }},
	}
	table := &strings.Builder{}
	fmt.Fprint(table, "\n| one tenant's destination |")
	for _, c := range columns {
		fmt.Fprintf(table, " %s | of well |", c.name)
	}
	fmt.Fprint(table, "\n|"+strings.Repeat("---|", 1+2*len(columns)))
	for _, mode := range outageModes {
		fmt.Fprintf(table, "\n| %s |", mode)
		for _, c := range columns {
			ratio := median(mode, func(p pair) float64 { return c.of(p.failing) / c.of(p.well) })
			fmt.Fprintf(table, " "+c.format+" | %.2f |", median(mode, func(p pair) float64 { return c.of(p.failing) }), ratio)
			if c.name == "delivered" {
				b.ReportMetric(ratio, mode+"/well")
			}
		}
	}
	b.Log(table.String())
}
