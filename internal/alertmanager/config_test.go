// SPDX-License-Identifier: Apache-2.0

package alertmanager

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/configtest"
)

func defaults() *Config {
	cfg := DefaultConfig()
	return &cfg
}

func TestOnlyEndpointsHaveToBeNamed(t *testing.T) {
	cfg, err := configtest.Read(t, "testdata/config.yaml", "least", defaults())
	require.NoError(t, err)
	want := defaults()
	want.Endpoints = []string{"http://localhost:9093"}
	assert.Equal(t, want, cfg)
	assert.Equal(t, 10*time.Second, cfg.Timeout)
	assert.Equal(t, time.Minute, cfg.ResendInterval)
	assert.Equal(t, 10_000, cfg.MaxAlerts)
}

func TestEverySettingIsRead(t *testing.T) {
	cfg, err := configtest.Read(t, "testdata/config.yaml", "all", defaults())
	require.NoError(t, err)
	assert.Equal(t, []string{"http://am-0:9093", "https://am-1:9093/prefix"}, cfg.Endpoints)
	assert.Equal(t, 30*time.Second, cfg.ResendInterval)
	assert.Equal(t, 100, cfg.MaxAlerts)
	assert.Equal(t, map[string]string{"cluster": "eu-1"}, cfg.ExternalLabels)
	assert.Equal(t, "https://console.example.org", cfg.ConsoleURL)
	assert.Equal(t, 5*time.Second, cfg.Timeout)
	assert.True(t, cfg.TLS.InsecureSkipVerify)
	token, _ := cfg.Headers.Get("Authorization")
	assert.Equal(t, "Bearer secret", string(token))
	assert.NotContains(t, fmt.Sprintf("%+v", cfg), "secret")
}

func TestEveryMistakeIsNamedByItsKey(t *testing.T) {
	refused := func(section string, messages ...string) {
		t.Helper()
		configtest.Refused(t, "testdata/config.yaml", section, defaults(), messages...)
	}
	refused("none", "endpoints: must name an Alertmanager, e.g. [http://localhost:9093]")
	refused("one", "endpoint: there may be several Alertmanagers: write endpoints: [http://localhost:9093]")
	refused("bad",
		"endpoints[0]: is no URL that begins with http:// or https:// and a host",
		"endpoints[1]: http://a:9093/api/v2/alerts: leave out /api/v2/alerts, it is added",
		"endpoints[3]: http://b:9093 is listed before",
		"endpoints[4]: is no URL",
		"resend_interval: 500ms must be at least 1s",
		"max_alerts: 0 must be at least 1",
		"timeout: 0s must be positive",
		"compression: Alertmanager does not read gzip: leave it out",
		"console_url: is no URL",
		"external_labels: a name is empty")
	refused("null", "endpoints: is null")
	refused("no unit", "resend_interval: 30 has no unit: write 30s, 30m or 30h")
	refused("unknown", "invalid keys: url")
}
