// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
}

func TestValuesAreReadAndDefaultsStay(t *testing.T) {
	cfg := &config{A: 7}
	require.NoError(t, confmap.NewFromStringMap(map[string]any{"b": []any{"x"}}).Unmarshal(cfg))
	assert.Equal(t, &config{A: 7, B: []string{"x"}}, cfg)
}
