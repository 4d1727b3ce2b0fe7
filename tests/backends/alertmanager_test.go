// SPDX-License-Identifier: Apache-2.0

//go:build backends

package backends

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/otelcol-llm/otelcol-llm/internal/alertmanager"
	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

const notified, often = 2 * time.Minute, 50 * time.Millisecond

// resend is how often an alert is repeated. It resolves by itself when nobody repeats it for lasts, which is longer than a busy machine
// holds its processes up.
const resend, lasts = 4 * time.Second, 4 * resend

// received is an alert as Alertmanager hands it to a webhook.
type received struct {
	Status       string            `json:"status"`
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	GeneratorURL string            `json:"generatorURL"`
}

// people are whom Alertmanager notifies.
type people struct {
	*httptest.Server
	mu    sync.Mutex
	heard []received
}

func newPeople(t testing.TB) *people {
	p := &people{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var message struct {
			Alerts []received `json:"alerts"`
		}
		assert.NoError(t, json.NewDecoder(r.Body).Decode(&message))
		p.mu.Lock()
		defer p.mu.Unlock()
		p.heard = append(p.heard, message.Alerts...)
	}))
	t.Cleanup(p.Close)
	return p
}

// of is what was heard of an alert.
func (p *people) of(name, status string) (all []received) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.heard {
		if r.Labels["alertname"] == name && r.Status == status {
			all = append(all, r)
		}
	}
	return all
}

func (p *people) waitFor(t testing.TB, name, status string) received {
	t.Helper()
	require.Eventually(t, func() bool { return len(p.of(name, status)) > 0 }, notified, often, "nobody heard that %s is %s", name, status)
	return p.of(name, status)[0]
}

// runAlertmanager runs an Alertmanager until the test ends. It groups nothing and notifies within a second.
func runAlertmanager(t testing.TB, endpoint, storage string, p *people) {
	t.Helper()
	config := spawn.WriteConfig(t, `
route: {receiver: people, group_by: ["..."], group_wait: 0s, group_interval: 1s, repeat_interval: 1h}
receivers: [{name: people, webhook_configs: [{url: "`+p.URL+`", send_resolved: true}]}]
`)
	keep(t, tool(t, "alertmanager", "ALERTMANAGER_VERSION"), "--config.file="+config, "--storage.path="+storage,
		"--web.listen-address="+endpoint, "--cluster.listen-address=")
	require.Eventually(t, func() bool {
		resp, err := http.Get("http://" + endpoint + "/-/ready")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, notified, often, "Alertmanager does not start")
}

// waitNoted waits until Alertmanager has noted what it has told of some alerts, which it does only after it has told it: it looks at its
// notes before it tells anything, once for each alert and group interval.
func waitNoted(t testing.TB, endpoint string, alerts int) {
	t.Helper()
	queries := func() float64 {
		resp, err := http.Get("http://" + endpoint + "/metrics")
		require.NoError(t, err)
		defer resp.Body.Close()
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(resp.Body)
		require.NoError(t, err)
		require.Len(t, families["alertmanager_nflog_queries_total"].GetMetric(), 1)
		return families["alertmanager_nflog_queries_total"].GetMetric()[0].GetCounter().GetValue()
	}
	told := queries()
	require.Eventually(t, func() bool { return queries() >= told+float64(2*alerts) }, notified, often, "Alertmanager notes nothing")
}

// newSender sends to an Alertmanager again and again.
func newSender(t testing.TB, endpoint string) *alertmanager.Sender {
	t.Helper()
	cfg := alertmanager.DefaultConfig()
	cfg.Endpoints = []string{"http://" + endpoint}
	cfg.ResendInterval = resend
	cfg.ExternalLabels = map[string]string{"cluster": "eu-1"}
	cfg.ConsoleURL = "http://localhost:8686"
	require.NoError(t, cfg.Validate())
	s, err := alertmanager.New(cfg, componenttest.NewNopTelemetrySettings())
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { assert.NoError(t, s.Shutdown(t.Context())) })
	return s
}

// listed is an alert as Alertmanager's API lists it.
type listed struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL"`
	Status       struct {
		State      string   `json:"state"`
		SilencedBy []string `json:"silencedBy"`
	} `json:"status"`
}

// call speaks to Alertmanager's API; in and out may be nil.
func call(t testing.TB, method, url string, in, out any) {
	t.Helper()
	body, err := json.Marshal(in)
	require.NoError(t, err)
	req, err := http.NewRequest(method, url, bytes.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	if out != nil {
		require.NoError(t, json.NewDecoder(resp.Body).Decode(out))
	}
}

// waitListed waits until Alertmanager lists an alert in a state.
func waitListed(t testing.TB, endpoint, name, state string) (alert listed) {
	t.Helper()
	require.Eventually(t, func() bool {
		var all []listed
		call(t, http.MethodGet, "http://"+endpoint+"/api/v2/alerts", nil, &all)
		for _, alert = range all {
			if alert.Labels["alertname"] == name && alert.Status.State == state {
				return true
			}
		}
		return false
	}, notified, often, "Alertmanager does not list %s as %s", name, state)
	return alert
}

// waitOutlived waits until an alert has outlived the end with which it was listed, because it was repeated.
func waitOutlived(t testing.TB, endpoint string, alert listed) {
	t.Helper()
	require.Eventually(t, func() bool {
		return waitListed(t, endpoint, alert.Labels["alertname"], "active").EndsAt.After(alert.EndsAt) && time.Now().After(alert.EndsAt)
	}, notified, often, "%v is not repeated", alert.Labels)
}

func alertOf(name string) alertmanager.Alert {
	return alertmanager.Alert{
		Labels:      map[string]string{"alertname": name, "severity": "page", "service.namespace": "tenant-a", "empty": ""},
		Annotations: map[string]string{"summary": "p95 of time to first token is 1.2 s", "runbook_url": "https://runbooks.example.org/ttft"},
		StartsAt:    time.Now().Add(-5 * time.Minute).UTC().Truncate(time.Millisecond),
	}
}

// Guarantees: an alert is listed with all it says, people hear of it, and hear when it is over.
func TestPeopleHearOfAnAlertAndOfItsEnd(t *testing.T) {
	hearing, endpoint := newPeople(t), spawn.FreeEndpoint(t)
	runAlertmanager(t, endpoint, t.TempDir(), hearing)
	s := newSender(t, endpoint)
	alert := alertOf("ttft")
	before := time.Now().Truncate(time.Millisecond)
	s.Set([]alertmanager.Alert{alert})

	want := map[string]string{"alertname": "ttft", "severity": "page", "service_namespace": "tenant-a", "cluster": "eu-1"}
	seen := waitListed(t, endpoint, "ttft", "active")
	after := time.Now()
	assert.Equal(t, want, seen.Labels)
	assert.Equal(t, alert.Annotations, seen.Annotations)
	assert.Equal(t, alert.StartsAt, seen.StartsAt)
	assert.Equal(t, "http://localhost:8686", seen.GeneratorURL)
	assert.WithinRange(t, seen.EndsAt, before.Add(lasts), after.Add(lasts), "four resend intervals after it was sent")
	heard := hearing.waitFor(t, "ttft", "firing")
	assert.Equal(t, received{Status: "firing", Labels: want, Annotations: alert.Annotations, GeneratorURL: "http://localhost:8686"}, heard)

	waitOutlived(t, endpoint, seen)
	assert.Empty(t, hearing.of("ttft", "resolved"), "repeated, it goes on")
	s.Set(nil)
	hearing.waitFor(t, "ttft", "resolved")
	assert.Len(t, hearing.of("ttft", "firing"), 1)
}

// Guarantees: a silence keeps an alert from people and nothing else: Alertmanager lists it, other alerts come through, and
// it does too when the silence ends.
func TestASilenceIsAlertmanagersBusiness(t *testing.T) {
	hearing, endpoint := newPeople(t), spawn.FreeEndpoint(t)
	runAlertmanager(t, endpoint, t.TempDir(), hearing)
	var silence struct {
		ID string `json:"silenceID"`
	}
	call(t, http.MethodPost, "http://"+endpoint+"/api/v2/silences", map[string]any{
		"matchers":  []map[string]any{{"name": "service_namespace", "value": "tenant-a", "isRegex": false, "isEqual": true}},
		"startsAt":  time.Now().UTC(),
		"endsAt":    time.Now().Add(time.Hour).UTC(),
		"createdBy": "test", "comment": "maintenance",
	}, &silence)

	other := alertOf("other")
	other.Labels["service.namespace"] = "tenant-b"
	newSender(t, endpoint).Set([]alertmanager.Alert{alertOf("silenced"), other})
	assert.Equal(t, []string{silence.ID}, waitListed(t, endpoint, "silenced", "suppressed").Status.SilencedBy)
	hearing.waitFor(t, "other", "firing")
	time.Sleep(3 * time.Second) // three group intervals
	assert.Empty(t, hearing.of("silenced", "firing"))
	waitListed(t, endpoint, "silenced", "suppressed")

	call(t, http.MethodDelete, "http://"+endpoint+"/api/v2/silence/"+silence.ID, nil, nil)
	hearing.waitFor(t, "silenced", "firing")
}

// Scenario: Alertmanager, which keeps no alerts on disk, is away for two seconds, in which one alert ends.
// Guarantees: it knows again what fires, nobody hears of that twice, and everybody hears of the end.
func TestAnAlertmanagerThatWasRestartedKnowsEverythingAgain(t *testing.T) {
	hearing, endpoint, storage := newPeople(t), spawn.FreeEndpoint(t), t.TempDir()
	s := newSender(t, endpoint)
	goesOn, ends := alertOf("goes on"), alertOf("ends")
	s.Set([]alertmanager.Alert{goesOn, ends})
	t.Run("before", func(t *testing.T) {
		runAlertmanager(t, endpoint, storage, hearing)
		hearing.waitFor(t, "goes on", "firing")
		hearing.waitFor(t, "ends", "firing")
		waitNoted(t, endpoint, 2)
	})
	s.Set([]alertmanager.Alert{goesOn})
	time.Sleep(2 * time.Second)
	t.Run("after", func(t *testing.T) {
		runAlertmanager(t, endpoint, storage, hearing)
		assert.Equal(t, goesOn.StartsAt, waitListed(t, endpoint, "goes on", "active").StartsAt)
		hearing.waitFor(t, "ends", "resolved")
		assert.Len(t, hearing.of("goes on", "firing"), 1)
	})
}

// Guarantees: an alert does not outlive those who sent it.
func TestAnAlertOfWhomNobodyHearsResolvesByItself(t *testing.T) {
	hearing, endpoint := newPeople(t), spawn.FreeEndpoint(t)
	runAlertmanager(t, endpoint, t.TempDir(), hearing)
	s := newSender(t, endpoint)
	s.Set([]alertmanager.Alert{alertOf("orphan")})
	hearing.waitFor(t, "orphan", "firing")
	require.NoError(t, s.Shutdown(t.Context()))
	hearing.waitFor(t, "orphan", "resolved")
}

// Scenario: the link of one alert is no URL, for which Alertmanager refuses the whole request.
// Guarantees: the other alert arrives.
func TestWhatAlertmanagerRefusesKeepsNothingElseFromIt(t *testing.T) {
	hearing, endpoint := newPeople(t), spawn.FreeEndpoint(t)
	runAlertmanager(t, endpoint, t.TempDir(), hearing)
	odd := alertOf("odd")
	odd.GeneratorURL = "no url"
	newSender(t, endpoint).Set([]alertmanager.Alert{odd, alertOf("sound")})
	hearing.waitFor(t, "sound", "firing")
	assert.Empty(t, hearing.of("odd", "firing"))
}
