// SPDX-License-Identifier: Apache-2.0

package alertmanager

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNamesAreSpelledAsEveryAlertmanagerTakesThem(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		assert.Equal(t, want, escape(in))
	}
	f("severity", "severity")
	f("service.namespace", "service_namespace")
	f("vllm:queue", "vllm_queue")
	f("größe", "gr__e")
	f("95th", "key_95th")
}

func TestOfTwoNamesThatBecomeOneThePlainOneCounts(t *testing.T) {
	f := func(values, defaults, want map[string]string) {
		t.Helper()
		assert.Equal(t, want, names(values, defaults))
	}
	type m = map[string]string
	f(nil, nil, m{})
	f(m{"a.b": "1", "a_b": "2"}, nil, m{"a_b": "2"})
	f(m{"a.b": "1", "a-b": "2"}, nil, m{"a_b": "2"})
	f(m{"a": "1", "empty": "", "": "x"}, nil, m{"a": "1"})
	f(m{"a": "1"}, m{"a": "2", "b": "3"}, m{"a": "1", "b": "3"})
	f(m{"a.b": "1"}, m{"a_b": "2"}, m{"a_b": "1"})
	f(m{"a": ""}, m{"a": "2"}, m{"a": "2"})
}

func TestAMessageIsWhatAlertmanagersAPIDescribes(t *testing.T) {
	cfg := DefaultConfig()
	cfg.ConsoleURL = "https://console.example.org"
	began := time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.FixedZone("CET", 3600))
	f := func(a Alert, want string) {
		t.Helper()
		got, err := cfg.encode([]item{{Alert: a}}, began.Add(time.Hour))
		require.NoError(t, err)
		assert.JSONEq(t, want, string(got))
	}
	f(Alert{Labels: map[string]string{"alertname": "a"}, StartsAt: began},
		`[{"labels": {"alertname": "a"}, "startsAt": "2026-03-01T11:00:00.123Z", "endsAt": "2026-03-01T12:04:00.123Z", "generatorURL": "https://console.example.org"}]`)
	f(Alert{
		Labels: map[string]string{"alertname": "a"}, Annotations: map[string]string{"summary": "TTFT \"p95\""},
		StartsAt: began, EndsAt: began.Add(time.Minute), GeneratorURL: "https://console.example.org/slo/1",
	}, `[{"labels": {"alertname": "a"}, "annotations": {"summary": "TTFT \"p95\""}, "startsAt": "2026-03-01T11:00:00.123Z",
		"endsAt": "2026-03-01T11:01:00.123Z", "generatorURL": "https://console.example.org/slo/1"}]`)
}
