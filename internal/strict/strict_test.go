// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/confmap"
)

type config struct {
	A int            `mapstructure:"a"`
	B []string       `mapstructure:"b"`
	C map[string]any `mapstructure:"c"`
	D time.Duration  `mapstructure:"d"`
	N struct {
		D time.Duration `mapstructure:"d"`
	} `mapstructure:"n"`
	L []struct {
		D *time.Duration `mapstructure:"d"`
		I int            `mapstructure:"i"`
	} `mapstructure:"l"`
	M map[string]time.Duration `mapstructure:"m"`
}

func (c *config) Unmarshal(conf *confmap.Conf) error { return Unmarshal(conf, c) }

func TestEveryNullIsNamedByItsPath(t *testing.T) {
	f := func(raw map[string]any, want string) {
		t.Helper()
		err := confmap.NewFromStringMap(raw).Unmarshal(&config{A: 7})
		if want == "" {
			require.NoError(t, err)
			return
		}
		require.ErrorContains(t, err, want)
	}
	const cure = ": is null: give it a value, or remove the key to have the default"
	f(map[string]any{}, "")
	f(nil, "")
	f(map[string]any{"a": 1, "b": []any{"x"}}, "")
	f(map[string]any{"a": nil}, "a"+cure)
	f(map[string]any{"a": nil, "b": nil}, "a"+cure+"\nb"+cure)
	f(map[string]any{"b": []any{"x", nil}}, "b[1]"+cure)
	f(map[string]any{"c": map[string]any{"d": map[string]any{"e": nil}}}, "c::d::e"+cure)
	f(map[string]any{"a": nil, "typo": 1}, "invalid keys: typo")
}

func TestNumbersThatDoNotFitAreNamed(t *testing.T) {
	f := func(raw map[string]any, want string) {
		t.Helper()
		err := confmap.NewFromStringMap(raw).Unmarshal(&config{})
		if want == "" {
			require.NoError(t, err)
			return
		}
		require.ErrorContains(t, err, want)
	}
	f(map[string]any{"d": "30s", "a": 2}, "")
	f(map[string]any{"d": 0}, "")
	f(map[string]any{"a": 2.0}, "")
	f(map[string]any{"d": 30}, "d: 30 has no unit: write 30s, 30m or 30h")
	f(map[string]any{"n": map[string]any{"d": 1.5}}, "n::d: 1.5 has no unit")
	f(map[string]any{"a": 1.5}, "a: 1.5 is no whole number")
	f(map[string]any{"l": []any{map[string]any{"d": "1s"}, map[string]any{"d": 60}}}, "l[1]::d: 60 has no unit")
	f(map[string]any{"l": []any{map[string]any{"i": 0.5}}}, "l[0]::i: 0.5 is no whole number")
	f(map[string]any{"m": map[string]any{"page": "1h", "ticket": 6}}, "m::ticket: 6 has no unit")
	f(map[string]any{"m": map[string]any{"page": "1h"}}, "")
}

// Scenario: a component with the settings of an HTTP client beside its own, as those that send have. Guarantees: its keys are
// looked into like the component's own, whether they stand beside them, in maps of their own, or are lists and optional; and
// what is right is read.
func TestTheSettingsOfAClientAreLookedInto(t *testing.T) {
	type client struct {
		confighttp.ClientConfig `mapstructure:",squash"`
		Interval                time.Duration `mapstructure:"interval"`
		Compaction              *config       `mapstructure:"compaction"`
	}
	f := func(raw map[string]any, want string) {
		t.Helper()
		err := Unmarshal(confmap.NewFromStringMap(raw), &client{ClientConfig: confighttp.NewDefaultClientConfig()})
		if want == "" {
			require.NoError(t, err)
			return
		}
		require.ErrorContains(t, err, want)
	}
	right := map[string]any{
		"endpoint": "http://localhost:9093", "timeout": "5s", "interval": "1m", "idle_conn_timeout": 0, "max_idle_conns": 7,
		"headers": map[string]any{"x-scope-orgid": "acme"}, "auth": map[string]any{"authenticator": "basicauth"},
		"tls":     map[string]any{"insecure": true, "reload_interval": "10s", "cipher_suites": []any{"TLS_AES_128_GCM_SHA256"}},
		"cookies": map[string]any{}, "compression": "gzip", "compression_params": map[string]any{"level": 2},
		"compaction": map[string]any{"d": "1s", "a": 3},
	}
	f(right, "")
	wrong := func(key string, value any, want string) {
		t.Helper()
		raw := maps.Clone(right)
		raw[key] = value
		f(raw, want)
	}
	wrong("timeout", 5, "timeout: 5 has no unit: write 5s, 5m or 5h")
	wrong("interval", 5, "interval: 5 has no unit")
	wrong("max_idle_conns", 1.5, "max_idle_conns: 1.5 is no whole number")
	wrong("tls", map[string]any{"reload_interval": 10}, "tls::reload_interval: 10 has no unit")
	wrong("compression_params", map[string]any{"level": 2.5}, "compression_params::level: 2.5 is no whole number")
	wrong("compaction", map[string]any{"d": 1}, "compaction::d: 1 has no unit")
}

func TestValuesAreReadAndDefaultsStay(t *testing.T) {
	cfg := &config{A: 7}
	require.NoError(t, confmap.NewFromStringMap(map[string]any{"b": []any{"x"}}).Unmarshal(cfg))
	assert.Equal(t, &config{A: 7, B: []string{"x"}}, cfg)
}
