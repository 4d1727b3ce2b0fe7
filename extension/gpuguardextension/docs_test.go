// SPDX-License-Identifier: Apache-2.0

package gpuguardextension

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/guard"
	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/policy"
	"github.com/otelcol-llm/otelcol-llm/internal/doctest"
	"github.com/otelcol-llm/otelcol-llm/internal/gpuaction"
	"github.com/otelcol-llm/otelcol-llm/internal/workload/workloadtest"
)

func TestMetadataAgreesWithTheCode(t *testing.T) {
	f := NewFactory()
	described := doctest.Metadata(t, "extension", f, metadata.ScopeName, map[component.StabilityLevel][]string{f.Stability(): {"extension"}})
	tel := componenttest.NewTelemetry()
	cfg := armed(t)
	cfg.Admin.NetAddr.Endpoint, cfg.Admin.Token = "localhost:0", token
	r := start(t, tel, cfg)
	r.fills(workloadtest.Start(t, "leaky"))
	r.soon("termed", "exited")
	r.own.lost.Add(t.Context(), 1)
	status, _ := r.ask("GET", "/state", func(req *http.Request) { req.Header.Del("Authorization") })
	assert.Equal(t, http.StatusUnauthorized, status)
	for name, want := range described {
		var got metricdata.Metrics
		require.EventuallyWithT(t, func(c *assert.CollectT) { // the audit has an action first
			var err error
			got, err = tel.GetMetric("otelcol_" + name)
			require.NoError(c, err)
		}, time.Minute, time.Millisecond)
		assert.Equal(t, want, doctest.Described{Description: got.Description, Unit: got.Unit})
		doctest.Has(t, "`otelcol_"+name+"`")
	}
	assert.Len(t, described, 14)
	r.end()
	require.NoError(t, tel.Shutdown(t.Context()))
}

func TestREADMEHasEverySettingWithItsDefault(t *testing.T) {
	doctest.Settings(t, createDefaultConfig(), map[string]string{
		"order": "`[leak, growth, live, newest]`", "victims": "none", "protected": "none", "file": "none; required with `dry_run: false`",
		"endpoint": "none: off", "token": "none; required unless `auth` is set",
	})
	for _, key := range []string{"| `policy` | nobody |", "| `audit` | no file |", "| `admin` | off |"} {
		doctest.Has(t, key)
	}
}

func TestREADMEHasEveryOutcomeReasonAndAttribute(t *testing.T) {
	for _, of := range []gpuaction.Outcome{
		gpuaction.WouldTerm, gpuaction.Termed, gpuaction.Exited, gpuaction.Killed, gpuaction.Stuck, gpuaction.Stopped, gpuaction.Interrupted, gpuaction.Refused,
	} {
		doctest.Has(t, "| `"+string(of)+"` |")
	}
	for _, of := range []policy.Reason{policy.NoRule, policy.Protected, policy.MaybeOne, policy.Critical, policy.Self, policy.Init, policy.KernelThread, policy.Ended} {
		doctest.Has(t, "`"+string(of)+"`")
	}
	for _, of := range []string{
		guard.Paused, guard.NoBudget, guard.NoCandidate, guard.NotTheSame, guard.NoPID, guard.NotRecorded, guard.NoCgroup, strings.TrimSuffix(guard.InCgroup, ": "),
		guard.Forbidden, guard.Relieved, guard.Disagrees, guard.OtherName,
	} {
		doctest.Has(t, "`"+of+"`")
	}
	all := gpuaction.Action{
		ID: "a", At: 1, Outcome: "o", Reason: "r", Method: "m", Rule: "r", Trigger: gpuaction.Threshold, LeakID: "l", Cause: "c", Device: "d", Used: 1, Total: 1, Candidates: 1,
		Process: gpuaction.Process{PID: 1, Start: 1, Started: 1, Executable: "e", Path: "p", Cgroup: "c", ContainerID: "c", PodUID: "p", Namespace: "n", Pod: "p", Container: "c"},
		Held:    1, Growth: 1, Detection: 1, Decision: 1, Duration: 1,
	}
	for _, of := range all.Attributes() {
		doctest.Has(t, "`"+of.Key+"`")
	}
}

func TestREADMEExamplesAreValid(t *testing.T) {
	assert.Equal(t, 3, doctest.Examples(t, "extensions", NewFactory()))
}
