// SPDX-License-Identifier: Apache-2.0

package alertmanager

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-llm/otelcol-llm/internal/lifecycletest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const soon, tick = time.Minute, 5 * time.Millisecond

// fake is an Alertmanager that keeps what it is sent, or answers as it is told.
type fake struct {
	*httptest.Server
	mu       sync.Mutex
	requests [][]message
	answer   func(w http.ResponseWriter, r *http.Request, alerts []message) bool // true: that was all
}

func serve(t testing.TB, answer func(w http.ResponseWriter, r *http.Request, alerts []message) bool) *fake {
	f := &fake{answer: answer}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var alerts []message
	if r.Method != http.MethodPost || r.URL.Path != "/api/v2/alerts" || r.Header.Get("Content-Type") != "application/json" ||
		json.NewDecoder(r.Body).Decode(&alerts) != nil {
		http.Error(w, "no such thing", http.StatusNotFound)
		return
	}
	if f.answer != nil && f.answer(w, r, alerts) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, alerts)
}

// taken is everything that was accepted.
func (f *fake) taken() (alerts []message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, request := range f.requests {
		alerts = append(alerts, request...)
	}
	return alerts
}

// has says whether an alert was taken as firing, or as resolved. With a resend interval of an hour, what fires ends hours ahead.
func (f *fake) has(name string, firing bool) bool {
	for _, m := range f.taken() {
		if m.Labels["alertname"] == name && m.EndsAt.After(time.Now()) == firing {
			return true
		}
	}
	return false
}

func status(code int) func(http.ResponseWriter, *http.Request, []message) bool {
	return func(w http.ResponseWriter, _ *http.Request, _ []message) bool {
		http.Error(w, "because", code)
		return true
	}
}

// sender starts a Sender that repeats after an hour, unless change says otherwise.
func sender(t testing.TB, set component.TelemetrySettings, change func(*Config), to ...*fake) *Sender {
	cfg := DefaultConfig()
	cfg.ResendInterval = time.Hour
	for _, f := range to {
		cfg.Endpoints = append(cfg.Endpoints, f.URL)
	}
	if change != nil {
		change(&cfg)
	}
	s, err := New(cfg, set)
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { assert.NoError(t, s.Shutdown(t.Context())) })
	return s
}

func resend(d time.Duration) func(*Config) { return func(c *Config) { c.ResendInterval = d } }

func logged() (component.TelemetrySettings, *observer.ObservedLogs) {
	core, logs := observer.New(zap.InfoLevel)
	set := componenttest.NewNopTelemetrySettings()
	set.Logger = zap.New(core)
	return set, logs
}

func TestLifecycle(t *testing.T) {
	up, down := serve(t, nil), serve(t, nil)
	down.Close()
	lifecycletest.Test(t, componenttest.NewNopHost(), func(t testing.TB) *Sender {
		cfg := DefaultConfig()
		cfg.Endpoints = []string{up.URL, down.URL}
		s, err := New(cfg, componenttest.NewNopTelemetrySettings())
		require.NoError(t, err)
		return s
	}, func(_ testing.TB, s *Sender) { s.Set([]Alert{alert("a")}) })
}

func TestABeginningAndAnEndAreToldAtOnce(t *testing.T) {
	am := serve(t, nil)
	s := sender(t, componenttest.NewNopTelemetrySettings(), nil, am)
	s.Set([]Alert{alert("a")})
	require.Eventually(t, func() bool { return am.has("a", true) }, soon, tick)
	s.Set(nil)
	require.Eventually(t, func() bool { return am.has("a", false) }, soon, tick)
	assert.Len(t, am.taken(), 2)
}

func TestWhatWasSetBeforeTheStartIsSent(t *testing.T) {
	am := serve(t, nil)
	cfg := DefaultConfig()
	cfg.Endpoints = []string{am.URL + "/"}
	s, err := New(cfg, componenttest.NewNopTelemetrySettings())
	require.NoError(t, err)
	s.Set([]Alert{alert("a")})
	require.NoError(t, s.Start(t.Context(), componenttest.NewNopHost()))
	require.Eventually(t, func() bool { return am.has("a", true) }, soon, tick)
	require.NoError(t, s.Shutdown(t.Context()))
	assert.False(t, am.has("a", false), "a restart is no end")
}

func TestWhatFiresIsRepeatedWithAnEndAhead(t *testing.T) {
	am := serve(t, nil)
	s := sender(t, componenttest.NewNopTelemetrySettings(), resend(50*time.Millisecond), am)
	before := time.Now()
	s.Set([]Alert{alert("a")})
	require.Eventually(t, func() bool { return len(am.taken()) >= 4 }, soon, tick)
	all := am.taken()
	for i, m := range all {
		assert.Equal(t, start, m.StartsAt)
		assert.GreaterOrEqual(t, m.EndsAt, before.Add(200*time.Millisecond).Truncate(time.Millisecond))
		assert.False(t, i > 0 && m.EndsAt.Before(all[i-1].EndsAt), "none reaches less far")
	}
	assert.Greater(t, all[3].EndsAt, all[0].EndsAt, "two ticks of a machine that is late may lie in one millisecond, more do not")
}

// Scenario: of two Alertmanagers one takes the request and never answers.
// Guarantees: neither the caller nor the other Alertmanager waits, and Shutdown does not either.
func TestAnAlertmanagerThatHangsHoldsNobodyUp(t *testing.T) {
	hanging := serve(t, func(_ http.ResponseWriter, r *http.Request, _ []message) bool {
		<-r.Context().Done()
		return true
	})
	am := serve(t, nil)
	s := sender(t, componenttest.NewNopTelemetrySettings(), func(c *Config) { c.Timeout = time.Hour }, hanging, am) // who waited would wait for that
	for i := range 20 {
		s.Set([]Alert{alert(fmt.Sprint(i))})
		require.Eventually(t, func() bool { return am.has(fmt.Sprint(i), true) }, soon, tick)
	}
	require.NoError(t, s.Shutdown(t.Context()))
}

// Scenario: an Alertmanager answers 400 to each request that holds one certain alert of 100, as for a label it does not take.
// Guarantees: the other 99 arrive, and the refusal is logged once with the labels and the answer.
func TestARefusedAlertIsFoundAmongTheOthers(t *testing.T) {
	am := serve(t, func(w http.ResponseWriter, _ *http.Request, alerts []message) bool {
		for _, m := range alerts {
			if m.Labels["alertname"] == "42" {
				http.Error(w, "no 42", http.StatusBadRequest)
				return true
			}
		}
		return false
	})
	set, logs := logged()
	s := sender(t, set, resend(50*time.Millisecond), am)
	var alerts []Alert
	for i := range 100 {
		alerts = append(alerts, alert(fmt.Sprint(i)))
	}
	s.Set(alerts)
	require.Eventually(t, func() bool {
		all, different := am.taken(), map[string]bool{}
		for _, m := range all {
			different[m.Labels["alertname"]] = true
		}
		return len(different) == 99 && len(all) > 300 // it goes on
	}, soon, tick)
	require.Len(t, logs.All(), 1)
	assert.Equal(t, "the Alertmanager refuses an alert", logs.All()[0].Message)
	fields := logs.All()[0].ContextMap()
	assert.Equal(t, "alertname=42", fields["labels"])
	assert.Equal(t, "answered 400 Bad Request: no 42", fields["error"])
}

// Scenario: an Alertmanager is not there, or not to be spoken to; while it is, an alert begins and another ends.
// Guarantees: it knows both when it is back, and the log says once that it was away and once that it is back.
func TestWhatCouldNotBeSentIsSentLater(t *testing.T) {
	for _, code := range []int{500, 503, 429, 401, 404} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			var away atomic.Bool
			var refused atomic.Int64
			am := serve(t, func(w http.ResponseWriter, r *http.Request, alerts []message) bool {
				return away.Load() && refused.Add(1) > 0 && status(code)(w, r, alerts)
			})
			set, logs := logged()
			s := sender(t, set, nil, am)
			s.Set([]Alert{alert("ends")})
			require.Eventually(t, func() bool { return am.has("ends", true) }, soon, tick)
			away.Store(true)
			s.Set([]Alert{alert("begins")})
			require.Eventually(t, func() bool { return refused.Load() >= 2 }, soon, tick)
			assert.Equal(t, 1, logs.Len())
			assert.False(t, am.has("begins", true))
			away.Store(false)
			require.Eventually(t, func() bool { return am.has("begins", true) && am.has("ends", false) && logs.Len() == 2 }, soon, tick)
			assert.Equal(t, "the Alertmanager does not take alerts; they are sent again until it does", logs.All()[0].Message)
			assert.Contains(t, logs.All()[0].ContextMap()["error"], fmt.Sprint("answered ", code))
			assert.Equal(t, "the Alertmanager takes alerts again", logs.All()[1].Message)
		})
	}
}

// Guarantees: an Alertmanager that is down is asked less and less often, up to once a resend interval.
func TestAnAlertmanagerThatIsDownIsNotHammered(t *testing.T) {
	var mu sync.Mutex
	var tries []time.Time
	am := serve(t, func(w http.ResponseWriter, r *http.Request, alerts []message) bool {
		mu.Lock()
		defer mu.Unlock()
		tries = append(tries, time.Now())
		return status(http.StatusServiceUnavailable)(w, r, alerts)
	})
	s := sender(t, componenttest.NewNopTelemetrySettings(), nil, am)
	i := 0
	require.Eventually(t, func() bool {
		i++
		s.Set([]Alert{alert(fmt.Sprint(i))}) // news all the time
		mu.Lock()
		defer mu.Unlock()
		return len(tries) >= 3
	}, soon, tick)
	mu.Lock()
	defer mu.Unlock()
	assert.GreaterOrEqual(t, tries[1].Sub(tries[0]), time.Second, "the pause begins after the answer")
	assert.GreaterOrEqual(t, tries[2].Sub(tries[1]), 2*time.Second)
}

func TestRequestsAreSmallAndCarryTheSettingsOfTheClient(t *testing.T) {
	var mu sync.Mutex
	var tokens []string
	am := serve(t, func(_ http.ResponseWriter, r *http.Request, _ []message) bool {
		mu.Lock()
		defer mu.Unlock()
		tokens = append(tokens, r.Header.Get("Authorization"))
		return false
	})
	s := sender(t, componenttest.NewNopTelemetrySettings(), func(c *Config) {
		c.Headers.Set("Authorization", "Bearer secret")
		c.ExternalLabels = map[string]string{"cluster.name": "eu-1"}
	}, am)
	var alerts []Alert
	for i := range 200 {
		alerts = append(alerts, alert(fmt.Sprint(i)))
	}
	s.Set(alerts)
	require.Eventually(t, func() bool { return len(am.taken()) == 200 }, soon, tick)
	am.mu.Lock()
	defer am.mu.Unlock()
	assert.Len(t, am.requests, 4)
	for _, request := range am.requests {
		assert.LessOrEqual(t, len(request), 64)
		assert.Equal(t, "eu-1", request[0].Labels["cluster_name"])
	}
	mu.Lock()
	defer mu.Unlock()
	assert.Equal(t, []string{"Bearer secret", "Bearer secret", "Bearer secret", "Bearer secret"}, tokens)
}

func TestASenderTellsOfItself(t *testing.T) {
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { assert.NoError(t, tel.Shutdown(context.Background())) })
	am, refusing := serve(t, nil), serve(t, status(http.StatusBadRequest))
	away := serve(t, nil)
	away.Close()
	s := sender(t, tel.NewTelemetrySettings(), func(c *Config) { c.MaxAlerts = 1 }, am, refusing, away)
	assert.Equal(t, 1, s.Set([]Alert{alert("a"), alert("b")}))
	value := func(name, endpoint, reason string) int64 {
		m, err := tel.GetMetric(name)
		if err != nil {
			return 0
		}
		var points []metricdata.DataPoint[int64]
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			points = data.DataPoints
		case metricdata.Gauge[int64]:
			points = data.DataPoints
		}
		for _, p := range points {
			of := func(key string) string {
				v, _ := p.Attributes.Value(attribute.Key(key))
				return v.AsString()
			}
			if of("endpoint") == endpoint && of("reason") == reason {
				return p.Value
			}
		}
		return 0
	}
	require.Eventually(t, func() bool {
		return value("otelcol_alertmanager_alerts_sent", am.URL, "") == 1 &&
			value("otelcol_alertmanager_alerts_failed", refusing.URL, "400") == 1 &&
			value("otelcol_alertmanager_alerts_failed", away.URL, "unreachable") >= 1
	}, soon, tick)
	assert.Equal(t, int64(1), value("otelcol_alertmanager_alerts_firing", "", ""))
	assert.Equal(t, int64(1), value("otelcol_alertmanager_alerts_left_out", "", ""))
}

func TestPasswordsInAURLAreNotShown(t *testing.T) {
	am := serve(t, status(http.StatusServiceUnavailable))
	set, logs := logged()
	s := sender(t, set, func(c *Config) { c.Endpoints[0] = strings.Replace(am.URL, "http://", "http://user:hidden@", 1) }, am)
	s.Set([]Alert{alert("a")})
	require.Eventually(t, func() bool { return logs.Len() == 1 }, soon, tick)
	assert.NotContains(t, fmt.Sprint(logs.All()[0].ContextMap()), "hidden")
}
