// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// driftSLO promises a P95 that everybody keeps all the time.
const driftSLO = `
apiVersion: openslo/v1
kind: SLO
metadata:
  name: ttft
  annotations: {otelcol-llm.dev/slo-id: "llm:chat:ttft:p95", otelcol-llm.dev/class: latency}
spec:
  service: chat
  indicator: {metadata: {name: ttft}, spec: {thresholdMetric: {metricSource: {type: opentelemetry, spec: {metric: "vllm:time_to_first_token_seconds"}}}}}
  timeWindow: [{duration: 1d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{op: lte, value: 0.8, target: 0.95}]
`

const driftConfig = `
extensions:
  slo_catalog: {paths: [%[1]s/slo.yaml]}
  file_storage: {directory: %[1]s, create_directory: true}
receivers:
  otlp: {protocols: {http: {endpoint: %[2]q}}}
processors:
  drift_heatmap:
    dimensions: [cloud.region, device.type, model.version]
    canary: {attribute: model.version, baseline: v1, candidate: v2}
    window: 10m
    reference_windows: 6
    lateness: 0s
    idle_timeout: 1h
    storage: file_storage
    checkpoint_interval: 1s
    refresh_interval: %[5]s
exporters:
  tsdb: {endpoint: %[3]q, directory: %[1]s/tsdb}
  file: {path: %[1]s/all.jsonl, flush_interval: 100ms, append: true}
service:
  extensions: [slo_catalog, file_storage]
  pipelines:
    metrics: {receivers: [otlp], processors: [drift_heatmap], exporters: [tsdb, file]}
  telemetry:
    metrics:
      readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: %[4]d}}}}]
`

// driftWindow is the length of the windows: more than the five minutes that Prometheus looks back.
const driftWindow = 10 * time.Minute

// heatmap is a Collector that makes a heatmap of OTLP in a database of its own. It may be killed and started again.
type heatmap struct {
	teller
	database onALaptop
	dir      string
}

func startHeatmap(t *testing.T, refresh string) *heatmap {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "slo.yaml"), []byte(driftSLO), 0o600))
	otlp, tsdb, port := spawn.FreeEndpoint(t), spawn.FreeEndpoint(t), spawn.FreePort(t)
	h := &heatmap{dir: dir, database: onALaptop{t: t, console: "http://" + tsdb}, teller: teller{
		t: t, otlp: "http://" + otlp, own: fmt.Sprintf("http://127.0.0.1:%d/metrics", port),
		config: spawn.WriteConfig(t, fmt.Sprintf(driftConfig, dir, otlp, tsdb, port, refresh)),
	}}
	h.start()
	return h
}

// fleetOf is what happened in a slice of time: eight combinations of 250 requests each. From the fault on, version v2 is slower
// by half in one region, with one device type.
func fleetOf(seed int, start, end time.Time, fault bool) pmetric.Metrics {
	random := rand.New(rand.NewPCG(uint64(seed), 7))
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.instance.id", "gateway")
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("vllm:time_to_first_token_seconds")
	m.SetUnit("s")
	m.SetEmptyExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	for _, region := range []string{"eu", "us"} {
		for _, device := range []string{"h100", "a100"} {
			for _, version := range []string{"v1", "v2"} {
				median := 0.2
				if fault && region == "eu" && device == "h100" && version == "v2" {
					median *= 1.5
				}
				p := m.ExponentialHistogram().DataPoints().AppendEmpty()
				p.Attributes().PutStr("cloud.region", region)
				p.Attributes().PutStr("device.type", device)
				p.Attributes().PutStr("model.version", version)
				p.SetStartTimestamp(pcommon.NewTimestampFromTime(start))
				p.SetTimestamp(pcommon.NewTimestampFromTime(end))
				observe(p, random, 250, median)
			}
		}
	}
	return md
}

// observe makes a point of log-normal values around a median.
func observe(p pmetric.ExponentialHistogramDataPoint, random *rand.Rand, n int, median float64) {
	const scale, from = 7, -2000
	counts := make([]uint64, 3000)
	var sum float64
	for range n {
		v := median * math.Exp(0.4*random.NormFloat64())
		counts[int(math.Ceil(math.Ldexp(math.Log2(v), scale)))-1-from]++
		sum += v
	}
	first := slices.IndexFunc(counts, func(n uint64) bool { return n > 0 })
	for counts[len(counts)-1] == 0 {
		counts = counts[:len(counts)-1]
	}
	p.SetScale(scale)
	p.SetCount(uint64(n))
	p.SetSum(sum)
	p.Positive().SetOffset(int32(from + first))
	p.Positive().BucketCounts().FromRaw(counts[first:])
}

// tell tells the k-th fifth of the n-th window, which is two minutes of four.
func (h *heatmap) tell(t0 time.Time, n, k int, fault bool) pmetric.Metrics {
	h.t.Helper()
	start := t0.Add(time.Duration(n)*driftWindow + time.Duration(k)*2*time.Minute)
	md := fleetOf(10*n+k, start, start.Add(2*time.Minute-time.Second), fault)
	h.send(md)
	return md
}

// waitFor waits until a query has an answer as of an event time.
func (h *heatmap) waitFor(query string, at time.Time) {
	h.t.Helper()
	require.Eventually(h.t, func() bool { return len(h.database.ask(query, at)) > 0 }, patience, 50*time.Millisecond, "%s as of %s", query, at)
}

// cells are the cells in an answer.
func cells(answer []sample) (all []string) {
	for _, s := range answer {
		all = append(all, strings.Join([]string{s.Metric["cloud_region"], s.Metric["device_type"], s.Metric["model_version"]}, " "))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Scenario: two hours of a fleet; in the second one, the new version is slower in one region with one device type, and keeps its
// promise all the same. All of it is asked by PromQL, which looks back for five minutes, while windows are ten long.
// Guarantees: within three windows exactly the guilty cell is degraded, and nobody else is accused before or after; the
// explanation names what the guilty have in common and nothing else; there is no moment at which a query finds no verdict; what
// came in was passed on as it was.
func TestACanaryThatIsWorseInOneCellIsShownByPromQL(t *testing.T) {
	parallel(t)
	h := startHeatmap(t, "100ms")
	t0 := time.Now().UTC().Truncate(driftWindow).Add(-13 * driftWindow)
	const fault, last = 6, 12
	var sent []pmetric.Metrics
	found := -1
	for n := range last {
		for k := range 5 {
			sent = append(sent, h.tell(t0, n, k, n >= fault))
			if n == 0 {
				continue
			}
			// The minute that is complete is told before the next one comes, as it would be if it took two minutes.
			at := t0.Add(time.Duration(n)*driftWindow + time.Duration(2*k+1)*time.Minute)
			h.waitFor(fmt.Sprintf(`slo_drift_state and timestamp(slo_drift_state) >= %d`, at.Unix()), at.Add(30*time.Second))
		}
		if got := cells(h.database.ask(`slo_drift_state{state="degraded"} == 1`, t0.Add(time.Duration(n)*driftWindow+9*time.Minute))); len(got) > 0 && found < 0 {
			found = n - 1 // the window that has closed
			assert.Equal(t, []string{"eu h100 v2"}, got)
		}
	}
	require.GreaterOrEqual(t, found, fault)
	assert.Less(t, found-fault, 3, "found in the third window at the latest")
	end := t0.Add(last*driftWindow - time.Minute)
	accused := h.database.ask(`max_over_time(slo_drift_state{state=~"drifting|degraded"}[2h]) == 1`, end)
	assert.Equal(t, []string{"eu h100 v2"}, cells(accused))
	assert.Empty(t, h.database.ask(`max_over_time(slo_drift_deviation_ratio[2h]) >= 0`, end), "every number that was promised is kept")
	blamed := map[string]bool{}
	for _, s := range h.database.ask(`slo_drift_explanation_ratio > 0`, end) {
		blamed[s.Metric["dimension"]+" "+s.Metric["value"]] = true
	}
	assert.Equal(t, map[string]bool{"cloud.region eu": true, "device.type h100": true, "model.version v2": true}, blamed)
	for at := t0.Add(driftWindow); at.Before(end); at = at.Add(30 * time.Second) {
		require.Len(t, h.database.ask(`sum by (cloud_region, device_type, model_version) (slo_drift_state) == 1`, at), 8, "as of %s", at)
	}
	require.Equal(t, 0, h.Stop())

	passed := map[string]int{}
	each(t, filepath.Join(h.dir, "all.jsonl"), func(line []byte) {
		md, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(line)
		require.NoError(t, err)
		passed[text(t, md)]++
	})
	for _, md := range sent {
		require.Equal(t, 1, passed[text(t, md)], "each batch came out once, as it was")
	}
}

// text is all that a batch says.
func text(t *testing.T, md pmetric.Metrics) string {
	t.Helper()
	data, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
	require.NoError(t, err)
	return string(data)
}

// history is what the windows from one to another have said: each series of the results by its labels and the end of its window.
func (h *heatmap) history(t0 time.Time, from, to int) map[string]string {
	h.t.Helper()
	all := map[string]string{}
	for n := from; n <= to; n++ {
		at := t0.Add(time.Duration(n) * driftWindow)
		for _, name := range []string{"state", "observed", "baseline", "deviation_ratio", "ratio", "explanation_ratio"} {
			for _, s := range h.database.ask(fmt.Sprintf(`slo_drift_%[1]s and timestamp(slo_drift_%[1]s) == %[2]d`, name, at.Unix()), at) {
				delete(s.Metric, "instance") // the Collector's, another one after a restart
				all[fmt.Sprint(n, s.Metric)] = fmt.Sprint(s.Value[1])
			}
		}
	}
	return all
}

// window tells a window and waits for the verdict on the one before it.
func (h *heatmap) window(t0 time.Time, n int, fault bool) {
	h.t.Helper()
	for k := range 5 {
		h.tell(t0, n, k, fault)
	}
	if n > 0 {
		at := t0.Add(time.Duration(n) * driftWindow)
		h.waitFor(fmt.Sprintf(`count(slo_drift_state and timestamp(slo_drift_state) == %d) == 32`, at.Unix()), at)
	}
}

// Scenario: the same story is told to a Collector that nobody disturbs, and to one that is killed twice: once while the frozen
// baseline grows, once while the canary is bad, in the middle of windows. The client sends again what it does not know to be taken.
// Guarantees: every window says the same, to the last digit, in both: what is observed, what was normal lately and once, verdicts
// and explanations. So no window is learned from twice, and none is forgotten.
func TestAHeatmapThatIsKilledGoesOnAsIfNothingHadHappened(t *testing.T) {
	parallel(t)
	t0 := time.Now().UTC().Truncate(driftWindow).Add(-13 * driftWindow)
	const fault, last = 8, 12
	quiet, killed := startHeatmap(t, "0s"), startHeatmap(t, "0s")
	for n := range last {
		quiet.window(t0, n, n >= fault)
		if n != 4 && n != 10 {
			killed.window(t0, n, n >= fault)
			continue
		}
		for k := range 3 {
			killed.tell(t0, n, k, n >= fault)
		}
		killed.saved("drift_heatmap")
		killed.Kill()
		killed.start()
		killed.window(t0, n, n >= fault)
	}
	want, got := quiet.history(t0, 1, last-1), killed.history(t0, 1, last-1)
	require.Contains(t, fmt.Sprint(want), "baseline:frozen")
	require.Contains(t, fmt.Sprint(want), "slo_drift_explanation")
	assert.Equal(t, want, got)
	assert.Equal(t, 0, quiet.Stop())
	assert.Equal(t, 0, killed.Stop())
}

// values opens what file_storage keeps of the processor. The Collector must not run.
func (h *heatmap) values(change func(values *bbolt.Bucket)) {
	h.t.Helper()
	db, err := bbolt.Open(filepath.Join(h.dir, "processor_drift_heatmap_"), 0o600, &bbolt.Options{Timeout: time.Second})
	require.NoError(h.t, err)
	require.NoError(h.t, db.Update(func(tx *bbolt.Tx) error {
		change(tx.Bucket([]byte("default")))
		return nil
	}))
	require.NoError(h.t, db.Close())
}

// Scenario: a Collector that has a frozen baseline is killed, its checkpoints are damaged, and it goes on.
// Guarantees: where the newest checkpoint is damaged it goes on from the one before, with the same baselines; where both are, it
// begins empty: it says so, and knows nothing as normal.
func TestADamagedCheckpointOfAHeatmap(t *testing.T) {
	t.Parallel()
	const windows = 8
	baselines := func(h *heatmap, t0 time.Time, n int) map[string]string {
		known := map[string]string{}
		for _, s := range h.database.ask(`slo_drift_baseline{baseline=~"dynamic|frozen"}`, t0.Add(time.Duration(n)*driftWindow)) {
			known[s.Metric["baseline"]+" "+cells([]sample{s})[0]] = fmt.Sprint(s.Value[1])
		}
		return known
	}
	f := func(name string, damage func(values *bbolt.Bucket), kept bool, problems float64, says string) {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			t0 := time.Now().UTC().Truncate(driftWindow).Add(-13 * driftWindow)
			h := startHeatmap(t, "0s")
			for n := range windows {
				h.window(t0, n, false)
			}
			var before map[string]string
			require.Eventually(t, func() bool {
				before = baselines(h, t0, windows-1)
				return len(before) == 16
			}, patience, 50*time.Millisecond, "two baselines of each cell")
			h.saved("drift_heatmap") // both generations hold the same
			h.Kill()
			h.values(damage)
			h.start()
			for k := range 5 {
				h.tell(t0, windows, k, false)
			}
			h.window(t0, windows+1, false)
			after := baselines(h, t0, windows+1)
			if kept {
				assert.Len(t, after, 16)
				for key, v := range after {
					was, err := strconv.ParseFloat(before[key], 64)
					require.NoError(t, err)
					is, err := strconv.ParseFloat(v, 64)
					require.NoError(t, err)
					if strings.HasPrefix(key, "frozen") {
						assert.InDelta(t, was, is, 0, key)
					}
					assert.InEpsilon(t, was, is, 0.05, key)
				}
			} else {
				assert.Empty(t, after)
			}
			damaged := 0.
			for name, f := range h.telemetry() {
				if strings.HasPrefix(name, "otelcol_drift_heatmap_checkpoints_damaged") {
					damaged += f.GetMetric()[0].GetCounter().GetValue()
				}
			}
			assert.InDelta(t, problems, damaged, 0)
			assert.Contains(t, h.Logs(), says)
			assert.Equal(t, 0, h.Stop())
		})
	}
	f("the newest manifest", func(values *bbolt.Bucket) {
		var newest string
		var sequence uint64
		for _, key := range keysOf(values, "drift_heatmap/manifest/") {
			var g generation
			require.NoError(t, cbor.Unmarshal(values.Get([]byte(key))[4:], &g)) // after a checksum
			if g.Sequence > sequence {
				newest, sequence = key, g.Sequence
			}
		}
		flip(t, values, newest)
	}, true, 1, "the state is that of the last checkpoint")
	for _, part := range []string{"drift_heatmap/manifest/", "drift_heatmap/part/head/", "drift_heatmap/part/cells/"} {
		f("all of "+part, func(values *bbolt.Bucket) {
			for _, key := range keysOf(values, part) {
				flip(t, values, key)
			}
		}, false, 2, "nothing sound is left, so it starts empty")
	}
}
