// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

const errorsOf = "llm:chat:errors:50"

// tellHours tells hours of the story, with the step that tells that they are over in place of one that told that of those before,
// and waits until they are judged.
func tellHours(t *testing.T, x *teller, to *sink, t0 time.Time, from, until int) {
	t.Helper()
	first, last := from*int(time.Hour/stepLength), until*int(time.Hour/stepLength)
	if from > 0 {
		first++
	}
	for step := first; step <= last; step++ {
		x.send(increments(t0, step))
	}
	require.Eventually(t, func() bool {
		judged := 0
		for _, h := range to.all("slo.error_budget.coverage", "slo_id", errorsOf) {
			if !h.last().at.Before(t0.Add(time.Duration(until) * time.Hour)) {
				judged++
			}
		}
		return judged == len(regions)
	}, patience, 50*time.Millisecond, "not all was judged up to hour %d", until)
}

// eventsOf is how many events were counted of a region, and coverageOf how much of the day its budget has seen.
func eventsOf(t *testing.T, to *sink, region string) float64 {
	t.Helper()
	return to.last(t, "slo.sli.events", "slo_id", errorsOf, "cloud.region", region, "outcome", "good").value +
		to.last(t, "slo.sli.events", "slo_id", errorsOf, "cloud.region", region, "outcome", "bad").value
}

func coverageOf(t *testing.T, to *sink, region string) float64 {
	t.Helper()
	return to.last(t, "slo.error_budget.coverage", "slo_id", errorsOf, "cloud.region", region).value
}

// store opens what file_storage keeps of the connector. The Collector must not run.
func store(t *testing.T, dir string, change func(values *bbolt.Bucket)) {
	t.Helper()
	db, err := bbolt.Open(filepath.Join(dir, "connector_slo_"), 0o600, &bbolt.Options{Timeout: time.Second})
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		change(tx.Bucket([]byte("default")))
		return nil
	}))
	require.NoError(t, db.Close())
}

// flip changes a bit in the middle of a value.
func flip(t *testing.T, values *bbolt.Bucket, key string) {
	t.Helper()
	value := append([]byte(nil), values.Get([]byte(key))...)
	require.NotEmpty(t, value, key)
	value[len(value)/2] ^= 1
	require.NoError(t, values.Put([]byte(key), value))
}

// generation is what a manifest of internal/checkpoint says.
type generation struct {
	_        struct{} `cbor:",toarray"`
	Format   uint32
	Sequence uint64
	Parts    map[string]struct {
		_        struct{} `cbor:",toarray"`
		Second   bool     // of two places
		Length   uint64
		Checksum uint32
	}
}

// newest is the younger of the two manifests, and the key of a part that it names.
func newest(t *testing.T, values *bbolt.Bucket, part string) (manifest, key string) {
	t.Helper()
	var sequence uint64
	for _, k := range []string{"slo/manifest/a", "slo/manifest/b"} {
		var g generation
		value := values.Get([]byte(k))
		require.Greater(t, len(value), 4, k)
		require.NoError(t, cbor.Unmarshal(value[4:], &g), k) // after a checksum
		require.Contains(t, g.Parts, part)
		if g.Sequence > sequence {
			sequence, manifest, key = g.Sequence, k, "slo/part/"+part+"/a"
			if g.Parts[part].Second {
				key = "slo/part/" + part + "/b"
			}
		}
	}
	return manifest, key
}

// keysOf are the keys that begin with a prefix.
func keysOf(values *bbolt.Bucket, prefix string) (keys []string) {
	c := values.Cursor()
	for k, _ := c.Seek([]byte(prefix)); strings.HasPrefix(string(k), prefix); k, _ = c.Next() {
		keys = append(keys, string(k))
	}
	return keys
}

// damaged is how many checkpoints the connector says it could not take up.
func damaged(x *teller) (n float64) {
	for name, f := range x.telemetry() {
		if strings.HasPrefix(name, "otelcol_slo_checkpoints_damaged") {
			n += f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	return n
}

// Scenario: a Collector that has judged two hours is stopped, its checkpoints are damaged or not, and it goes on with the third.
// Guarantees: counters and books go on; where the newest checkpoint is damaged they go on from the one before, and where both
// are, the connector begins empty. What is damaged is said, with what is done instead, and coverage tells what is not known.
func TestADamagedCheckpointCostsAtMostWhatItHeld(t *testing.T) {
	t.Parallel()
	hour := float64(perStep) * float64(time.Hour/stepLength)
	f := func(name string, damage func(values *bbolt.Bucket), hoursKept int, broken float64, says ...string) {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			t0 := time.Now().UTC().Truncate(time.Hour).Add(-8 * time.Hour)
			to := newSink(t)
			x := startTeller(t, regionalSLOs, kept, to.URL, true)
			tellHours(t, x, to, t0, 0, 2)
			x.saved("slo") // the checkpoint before the last one holds the same
			t.Log(x.checkpoints())
			require.Equal(t, 0, x.Stop()) // all is told
			assert.InDelta(t, 2*hour+perStep, eventsOf(t, to, "eu"), 0)
			assert.InDelta(t, 2./24, coverageOf(t, to, "eu"), 0.002)
			if damage != nil {
				store(t, x.storage, damage)
			}
			to.forget()
			x.start()
			tellHours(t, x, to, t0, 2, 3)
			assert.InDelta(t, broken, damaged(x), 0)
			assert.Equal(t, 0, x.Stop())
			want := float64(hoursKept+1) * hour
			if hoursKept > 0 {
				want += perStep // of the step that told that they are over
			}
			assert.InDelta(t, want, eventsOf(t, to, "eu"), 0)
			assert.InDelta(t, float64(hoursKept+1)/24, coverageOf(t, to, "eu"), 0.002)
			for _, text := range says {
				assert.Contains(t, x.Logs(), text)
			}
			if broken == 0 {
				assert.NotContains(t, x.Logs(), "damaged")
			}
		})
	}
	f("sound", nil, 2, 0, "the state is that of the last checkpoint")
	f("the newest manifest", func(values *bbolt.Bucket) {
		manifest, _ := newest(t, values, "head")
		flip(t, values, manifest)
	}, 2, 1, "a checkpoint is damaged", "slo/manifest/", " has checksum ", " is used", "the state is that of the last checkpoint")
	f("the newest part", func(values *bbolt.Bucket) {
		_, head := newest(t, values, "head")
		flip(t, values, head)
	}, 2, 1, "a checkpoint is damaged", "slo/part/head/", " has checksum ", " is used", "the state is that of the last checkpoint")
	for _, part := range []string{"slo/manifest/", "slo/part/head/", "slo/part/series/"} {
		f("all of "+part, func(values *bbolt.Bucket) {
			for _, key := range keysOf(values, part) {
				flip(t, values, key)
			}
		}, 0, 2, "a checkpoint is damaged", part, "nothing sound is left, so it starts empty")
	}
}

const deadManConfig = `
extensions:
  slo_catalog: {paths: [%[1]q]}
receivers:
  otlp: {protocols: {http: {endpoint: %[2]q}}}
connectors:
  slo: {refresh_interval: 1s}
exporters:
  prometheus: {endpoint: %[3]q, metric_expiration: 3s}
service:
  extensions: [slo_catalog]
  pipelines:
    metrics: {receivers: [otlp], exporters: [slo]}
    metrics/slo: {receivers: [slo], exporters: [prometheus]}
  telemetry: {metrics: {level: none}}
`

// Guarantees: whoever scrapes the results sees slo.evaluation.lag, from the start and growing while nothing comes in, and does
// not see it when the process is dead.
func TestTheDeadMansSignalIsThereUntilTheProcessIsNot(t *testing.T) {
	parallel(t)
	slos := filepath.Join(t.TempDir(), "slo.yaml")
	require.NoError(t, os.WriteFile(slos, []byte(regionalSLOs), 0o600))
	otlp, results := spawn.FreeEndpoint(t), spawn.FreeEndpoint(t)
	c := spawn.Start(t, spawn.Options{Configs: []string{spawn.WriteConfig(t, fmt.Sprintf(deadManConfig, slos, otlp, results))}})
	c.WaitReady()
	lag := func() (seconds float64, there bool) {
		resp, err := http.Get("http://" + results + "/metrics")
		if err != nil {
			return 0, false
		}
		defer resp.Body.Close()
		f := families(t, resp.Body)["slo_evaluation_lag_seconds"]
		if f == nil {
			return 0, false
		}
		return f.GetMetric()[0].GetGauge().GetValue(), true
	}
	grown := func(than float64) (seconds float64) {
		t.Helper()
		require.Eventually(t, func() bool {
			s, there := lag()
			seconds = s
			return there && s > than
		}, patience, 50*time.Millisecond, "slo.evaluation.lag does not exceed %g s", than)
		return seconds
	}
	grown(grown(grown(0)))
	// Input of an hour ago: verdicts are that far behind.
	then := time.Now().Add(-time.Hour)
	require.NoError(t, post(t.Context(), "http://"+otlp, increments(then, 0)))
	seen := grown(3000)
	assert.Less(t, seen, time.Since(then).Seconds()+100)
	c.Kill()
	_, there := lag()
	assert.False(t, there)
}
