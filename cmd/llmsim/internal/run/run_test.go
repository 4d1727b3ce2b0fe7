// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/scenario"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/trace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const twoReplicas = `
model: m
replicas: [{labels: {cloud.region: eu}}, {labels: {cloud.region: us}}]
faults:
  - {kind: latency, match: {cloud.region: us}, from: 0s, until: 1000h, factor: 3}
  - {kind: latency, match: {cloud.region: eu}, from: 1000h, factor: 2}`

func options(t *testing.T, text string) Options {
	t.Helper()
	s, err := scenario.Parse("s.yaml", []byte(text), 1)
	require.NoError(t, err)
	return Options{
		Scenario: s, Source: trace.Poisson(5, nil, 1), Seed: 1, Speed: 300,
		Listen: "127.0.0.1:0", Control: "127.0.0.1:0",
	}
}

func start(t *testing.T, o Options) *Simulation {
	t.Helper()
	sim, err := Start(o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, sim.Close())
		http.DefaultClient.CloseIdleConnections()
	})
	return sim
}

func get(t *testing.T, url string) []byte {
	t.Helper()
	resp, err := http.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode, url)
	return body
}

func TestEveryReplicaServesItsMetrics(t *testing.T) {
	sim := start(t, options(t, twoReplicas))
	require.Len(t, sim.Addresses(), 2)
	for _, address := range sim.Addresses() {
		assert.Eventually(t, func() bool {
			p := expfmt.NewTextParser(model.UTF8Validation)
			mf, err := p.TextToMetricFamilies(bytes.NewReader(get(t, "http://"+address+"/metrics")))
			return err == nil && mf["vllm:time_to_first_token_seconds"].GetMetric()[0].GetHistogram().GetSampleCount() > 10
		}, time.Minute, 50*time.Millisecond)
		get(t, "http://"+address+"/health")
	}
}

func TestTargetsAreWhatPrometheusDiscovers(t *testing.T) {
	sim := start(t, options(t, twoReplicas))
	var groups []struct {
		Targets []string       `json:"targets"`
		Labels  model.LabelSet `json:"labels"` // Prometheus' own type: it checks the names
	}
	require.NoError(t, json.Unmarshal(get(t, "http://"+sim.Control()+"/targets"), &groups))
	require.Len(t, groups, 2)
	for i, region := range []model.LabelValue{"eu", "us"} {
		assert.Equal(t, []string{sim.Addresses()[i]}, groups[i].Targets)
		assert.Equal(t, region, groups[i].Labels["cloud.region"])
		assert.Contains(t, groups[i].Labels, model.LabelName("service.instance.id"))
	}
}

func TestTargetsOnEveryInterfaceAreNamedAsTheAskerNamedUs(t *testing.T) {
	o := options(t, twoReplicas)
	o.Listen = "0.0.0.0:0"
	sim := start(t, o)
	targets := sim.targets("llmsim.local:8000")
	assert.Regexp(t, `^llmsim\.local:\d+$`, targets[0].Targets[0])
}

func TestStatusAddsUpAndKnowsTheFaults(t *testing.T) {
	sim := start(t, options(t, twoReplicas))
	var s Status
	require.Eventually(t, func() bool {
		require.NoError(t, json.Unmarshal(get(t, "http://"+sim.Control()+"/status"), &s))
		return s.Requests.Finished["stop"] > 10
	}, time.Minute, 50*time.Millisecond)
	finished := uint64(0)
	for _, n := range s.Requests.Finished {
		finished += n
	}
	assert.Equal(t, s.Requests.Arrived, s.Requests.Refused+finished+uint64(s.Requests.Running+s.Requests.Waiting))
	assert.Positive(t, s.SimulatedSeconds)
	require.Len(t, s.ActiveFaults, 1)
	assert.Equal(t, map[string]string{"cloud.region": "us"}, s.ActiveFaults[0].Match)
	assert.NotNil(t, s.ActiveFaults[0].Until)
	require.Len(t, s.NextFaults, 2)
	assert.Equal(t, "end", s.NextFaults[0].Change)
	assert.Equal(t, "begin", s.NextFaults[1].Change)
	assert.WithinDuration(t, s.Started.Add(1000*time.Hour/300), s.NextFaults[1].At, time.Millisecond)
	assert.Nil(t, s.Spans)
}

func TestSpansGoToTheEndpoint(t *testing.T) {
	posts := make(chan struct{}, 1000)
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		select {
		case posts <- struct{}{}:
		default:
		}
	}))
	defer srv.Close()
	o := options(t, twoReplicas)
	o.OTLPEndpoint = srv.URL
	sim := start(t, o)
	select {
	case <-posts:
	case <-time.After(10 * time.Second):
		t.Fatal("no spans")
	}
	assert.Eventually(t, func() bool { return sim.Status().Spans.Sent > 0 }, time.Minute, 20*time.Millisecond)
}

func TestConnectionOnWhichNobodyAsksHoldsNothingUp(t *testing.T) {
	sim, err := Start(options(t, twoReplicas))
	require.NoError(t, err)
	conn, err := net.Dial("tcp", sim.Control())
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, sim.Close()) // by itself, the connection would never end
}

func TestAddressInUseIsAnErrorThatNamesTheReplica(t *testing.T) {
	first := start(t, options(t, twoReplicas))
	o := options(t, twoReplicas)
	o.Listen = first.Addresses()[0]
	_, err := Start(o)
	assert.ErrorContains(t, err, "listen: replica 1 of 2")

	o.Listen = "127.0.0.1:65535"
	_, err = Start(o)
	assert.ErrorContains(t, err, "leaves room for 2 ports")

	o.Listen = "nonsense"
	_, err = Start(o)
	assert.ErrorContains(t, err, "is no address like 127.0.0.1:8000")

	o = options(t, twoReplicas)
	o.OTLPEndpoint = "localhost:4318"
	_, err = Start(o)
	assert.ErrorContains(t, err, "is no URL")
}

func TestOnceIsTheSameToTheByteAndFollowsTheSeed(t *testing.T) {
	play := func(seed uint64) string {
		rows, err := trace.Load("../../../../testdata/traffic/azure/conv_2000.csv")
		require.NoError(t, err)
		o := options(t, twoReplicas+"\nengines: {default: {outcomes: {abort: 0.1, error: 0.1}}}")
		o.Source, o.Seed = trace.Replay(rows, false), seed
		var out bytes.Buffer
		require.NoError(t, Once(context.Background(), o, 0, "replica-1", &out))
		return out.String()
	}
	want := play(1)
	assert.Equal(t, want, play(1))
	assert.NotEqual(t, want, play(2))
	assert.Contains(t, want, `vllm:num_requests_running{engine="0",model_name="m"} 0`)
}

func TestOnceStopsAtItsTimeOrSignal(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, Once(context.Background(), options(t, twoReplicas), 30*time.Second, "", &out))
	assert.Contains(t, out.String(), "vllm:request_success_total")

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	assert.ErrorIs(t, Once(ctx, options(t, twoReplicas), 30*time.Second, "", io.Discard), context.Canceled)
	assert.ErrorContains(t, Once(context.Background(), options(t, twoReplicas), time.Second, "r9", io.Discard),
		`replica: "r9" is not one of replica-0, replica-1`)
}

func TestOnceSendsEverySpanOrFails(t *testing.T) {
	status := http.StatusOK
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	defer srv.Close()
	o := options(t, twoReplicas)
	o.OTLPEndpoint = srv.URL
	require.NoError(t, Once(context.Background(), o, time.Minute, "", io.Discard))
	status = http.StatusTeapot
	o.Source = trace.Poisson(5, nil, 1)
	assert.ErrorContains(t, Once(context.Background(), o, time.Minute, "", io.Discard), "spans were lost")
}
