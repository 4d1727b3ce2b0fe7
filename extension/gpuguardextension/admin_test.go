// SPDX-License-Identifier: Apache-2.0

package gpuguardextension

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/workload/workloadtest"
)

const token = "a-token-of-24-characters"

// seen is one whose admin endpoint listens.
func seen(t *testing.T, cfg *Config) *rig {
	t.Helper()
	cfg.Admin.NetAddr.Endpoint, cfg.Admin.Token, cfg.Admin.AllowedHosts = "localhost:0", token, []string{"guard.example.com"}
	return start(t, nil, cfg)
}

// ask asks with the token, unless change takes it away.
func (r *rig) ask(method, path string, change func(*http.Request)) (status int, body string) {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), method, "http://"+r.admin.listener.Addr().String()+path, http.NoBody)
	require.NoError(r.t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	if change != nil {
		change(request)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Do(request)
	require.NoError(r.t, err)
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	require.NoError(r.t, err)
	return resp.StatusCode, string(content)
}

func TestWhoHasNoTokenIsTurnedAway(t *testing.T) {
	r := seen(t, armed(t))
	f := func(authorization string, want int) {
		t.Helper()
		for _, of := range [][2]string{{"GET", "/state"}, {"POST", "/pause"}, {"POST", "/resume"}, {"GET", "/"}} {
			status, body := r.ask(of[0], of[1], func(req *http.Request) { req.Header.Set("Authorization", authorization) })
			assert.Equal(t, want, status, of)
			assert.NotContains(t, body, "budget")
		}
	}
	f("", http.StatusUnauthorized)
	f("Bearer", http.StatusUnauthorized)
	f("Bearer ", http.StatusUnauthorized)
	f(token, http.StatusUnauthorized)
	f("Bearer "+token[:23], http.StatusUnauthorized)
	f("Bearer "+token+"x", http.StatusUnauthorized)
	f("Basic "+token, http.StatusUnauthorized)
	f("bearer"+token, http.StatusUnauthorized)
	status, _ := r.ask("GET", "/state", func(req *http.Request) { req.Header.Set("Authorization", "bearer "+token) })
	assert.Equal(t, http.StatusOK, status)
	assert.False(t, r.view().Paused)
}

// Scenario: a page in a browser asks, or has its name resolved to this address (DNS rebinding). Guarantees: it is turned away, even
// with the token.
func TestPagesAreTurnedAway(t *testing.T) {
	r := seen(t, armed(t))
	f := func(host string, want int) {
		t.Helper()
		status, _ := r.ask("GET", "/state", func(req *http.Request) { req.Host = host })
		assert.Equal(t, want, status, host)
	}
	f("localhost:8687", http.StatusOK)
	f("LOCALHOST.", http.StatusOK)
	f("127.0.0.1", http.StatusOK)
	f("[::1]:8687", http.StatusOK)
	f("guard.example.com", http.StatusOK)
	f("evil.example", http.StatusForbidden)
	f("localhost.evil.example", http.StatusForbidden)
	for name, value := range map[string]string{"Origin": "http://localhost:8687", "Sec-Fetch-Site": "same-origin"} {
		status, _ := r.ask("POST", "/pause", func(req *http.Request) { req.Header.Set(name, value) })
		assert.Equal(t, http.StatusForbidden, status)
	}
	assert.False(t, r.view().Paused)
}

func TestPeopleSeeAndStopTheGuard(t *testing.T) {
	cfg := armed(t)
	r := seen(t, cfg)
	status, body := r.ask("POST", "/pause", nil)
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, body, `"paused": true`)
	cmd := workloadtest.Start(t, "leaky")
	r.fills(cmd)
	r.soon("refused: paused")
	status, body = r.ask("GET", "/state", nil)
	require.Equal(t, http.StatusOK, status)
	var state map[string]any
	require.NoError(t, json.Unmarshal([]byte(body), &state))
	assert.InDelta(t, 3, state["budget_left"], 0)
	device := state["devices"].([]any)[0].(map[string]any)
	assert.Equal(t, gpu, device["id"])
	assert.InDelta(t, float64(90*gib), device["used"], 0)
	assert.InDelta(t, cmd.Process.Pid, device["candidates"].([]any)[0].(map[string]any)["pid"], 0)
	assert.Equal(t, "paused", state["last_actions"].([]any)[0].(map[string]any)["gpu_guard.reason"])
	assert.NotContains(t, body, token)
	assert.True(t, alive(cmd))

	status, _ = r.ask("GET", "/resume", nil)
	assert.Equal(t, http.StatusMethodNotAllowed, status, "looking changes nothing")
	assert.True(t, alive(cmd))
	status, body = r.ask("POST", "/resume", nil)
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, body, `"paused": false`)
	require.Eventually(t, func() bool { return !alive(cmd) }, time.Minute, time.Millisecond)
}

func TestWithoutAnEndpointNobodyListens(t *testing.T) {
	r := start(t, nil, armed(t))
	assert.Nil(t, r.admin.listener)
}
