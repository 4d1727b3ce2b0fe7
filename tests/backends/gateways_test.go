// SPDX-License-Identifier: Apache-2.0

//go:build backends

package backends

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// ofTeams are promises on cumulative histograms and on delta counters. In a window either none or all of the events are bad, so
// that its verdict stays whatever share of it a crash loses.
const ofTeams = `
apiVersion: openslo/v1
kind: SLO
metadata: {name: ttft, annotations: {otelcol-llm.dev/slo-id: "llm:chat:ttft:p50", otelcol-llm.dev/class: latency}}
spec:
  service: chat
  indicator: {metadata: {name: ttft}, spec: {thresholdMetric: {metricSource: {type: opentelemetry, spec: {metric: ttft}}}}}
  timeWindow: [{duration: 1d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{op: lte, value: 0.8, target: 0.5}]
---
apiVersion: openslo/v1
kind: SLO
metadata: {name: errors, annotations: {otelcol-llm.dev/slo-id: "llm:chat:errors:50", otelcol-llm.dev/class: availability}}
spec:
  service: chat
  indicator:
    metadata: {name: errors}
    spec:
      ratioMetric:
        counter: true
        bad: {metricSource: {type: opentelemetry, spec: {metric: failed}}}
        total: {metricSource: {type: opentelemetry, spec: {metric: requests}}}
  timeWindow: [{duration: 1d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{target: 0.5}]
---
apiVersion: otelcol-llm.dev/v1alpha1
kind: ViolationPolicy
metadata: {name: ttft-2x5m}
spec: {window: 5m, consecutiveWindows: 2, when: {all: [{slo: ttft}]}}
---
apiVersion: otelcol-llm.dev/v1alpha1
kind: ViolationPolicy
metadata: {name: errors-1x5m}
spec: {window: 5m, when: {all: [{slo: errors}]}}
`

// An hour of two teams with six replicas each, told in half a minute.
const (
	teamStep     = 15 * time.Second
	teamSteps    = int(time.Hour / teamStep)
	teamPace     = 120 * time.Millisecond
	teamReplicas = 6
	teamEvents   = 10 // in a step, of a replica
)

// brokenTeam are the windows, counted from 0, in which all events of a team are bad.
var brokenTeam = map[string][]int{"team-a": {3, 4, 5, 9, 10}, "team-b": {2, 6, 7, 8, 11}}

// step is what all replicas tell of a step: the histogram since t0, the counters since the step before.
func teamsAt(t0 time.Time, step int) pmetric.Metrics {
	md := pmetric.NewMetrics()
	at := t0.Add(time.Duration(step+1)*teamStep - time.Second)
	for team, broken := range brokenTeam {
		isBad := func(step int) bool { return slices.Contains(broken, int(time.Duration(step)*teamStep/(5*time.Minute))) }
		var good, bad uint64
		for i := range step + 1 {
			if isBad(i) {
				bad += teamEvents
			} else {
				good += teamEvents
			}
		}
		for replica := range teamReplicas {
			rm := md.ResourceMetrics().AppendEmpty()
			rm.Resource().Attributes().PutStr("k8s.namespace.name", team)
			rm.Resource().Attributes().PutStr("service.name", "chat")
			rm.Resource().Attributes().PutStr("service.instance.id", fmt.Sprintf("%s-%d", team, replica))
			sm := rm.ScopeMetrics().AppendEmpty()
			m := sm.Metrics().AppendEmpty()
			m.SetName("ttft")
			m.SetUnit("s")
			m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			p := m.Histogram().DataPoints().AppendEmpty()
			p.SetStartTimestamp(pcommon.NewTimestampFromTime(t0))
			p.SetTimestamp(pcommon.NewTimestampFromTime(at))
			p.ExplicitBounds().FromRaw([]float64{0.2, 0.8, 3})
			p.BucketCounts().FromRaw([]uint64{0, good, bad, 0})
			p.SetCount(good + bad)
			failed := int64(0)
			if isBad(step) {
				failed = teamEvents
			}
			for name, n := range map[string]int64{"requests": teamEvents, "failed": failed} {
				m := sm.Metrics().AppendEmpty()
				m.SetName(name)
				m.SetEmptySum().SetIsMonotonic(true)
				m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
				p := m.Sum().DataPoints().AppendEmpty()
				p.SetStartTimestamp(pcommon.NewTimestampFromTime(at.Add(-teamStep)))
				p.SetTimestamp(pcommon.NewTimestampFromTime(at))
				p.SetIntValue(n)
			}
		}
	}
	return md
}

// startAgent runs builtin:agent before Kafka and returns where it takes OTLP.
func startAgent(t testing.TB, kafka string) (otlp string) {
	t.Helper()
	otlp = spawn.FreeEndpoint(t)
	configs := []string{"builtin:agent"}
	for path, value := range map[string]string{
		"receivers::otlp::protocols::grpc::endpoint": spawn.FreeEndpoint(t),
		"receivers::otlp::protocols::http::endpoint": otlp,
		"extensions::health_check::endpoint":         spawn.FreeEndpoint(t),
		"service::pipelines::metrics/llm":            "null", // there is no engine
		"service::telemetry::metrics::level":         "none",
		"exporters::kafka::timeout":                  "2m", // what Kafka did not answer in time is sent again, and is there twice
	} {
		configs = append(configs, fmt.Sprintf("yaml:%s: %s", path, value))
	}
	c := spawn.Start(t, spawn.Options{Configs: configs, Env: []string{"HOSTNAME=agent", "KAFKA_BROKERS=" + kafka, "OTELCOL_LLM_EXPORTER=kafka"}})
	c.WaitReady()
	return "http://" + otlp
}

// behindKafka is a Kafka that agents fill, and those who judge what comes out: one gateway alone; and two of which each hears a part,
// with one that is told by both.
type behindKafka struct {
	destinations
	env   []string
	agent claiming
	parts [2]*gateway
	dirs  [2]string
}

// quick are the settings of who judges a story that is told 120 times as fast as it happened: a second is two minutes of it.
const quick = "connectors::slo: {checkpoint_interval: 1s, burn_rates: [], refresh_interval: 2s, max_lag: 12h, "

func startBehindKafka(t *testing.T) *behindKafka {
	t.Helper()
	slos := filepath.Join(t.TempDir(), "slo.yaml")
	require.NoError(t, os.WriteFile(slos, []byte(ofTeams), 0o600))
	kafka := startKafka(t)
	b := &behindKafka{
		destinations: destinations{startPrometheusForOTLP(t), startLogStore(t), jaeger{otlp: spawn.FreeEndpoint(t)}},
		env:          []string{"SLO_CATALOG=" + slos, "KAFKA_BROKERS=" + kafka},
		agent:        claiming{t: t, otlp: startAgent(t, kafka)},
	}
	alone := []string{"builtin:gateway-kafka", "yaml:" + quick + "lateness: 20m, idle_timeout: 20s}",
		"yaml:service::pipelines::metrics/results::receivers: [slo]", "yaml:service::pipelines::metrics/judged::exporters: [slo]"}
	for _, signal := range []string{"metrics", "traces", "logs"} {
		alone = append(alone, fmt.Sprintf("yaml:receivers::kafka/%[1]s::group_id: alone-%[1]s", signal))
	}
	startGateway(t, b.destinations, "alone", "", b.env, alone...)
	for i := range b.parts {
		b.dirs[i] = t.TempDir()
		b.startPart(t, i)
	}
	startGateway(t, b.destinations, "judge", "", b.env, "builtin:judge", "yaml:"+quick+"lateness: 50m, idle_timeout: 40s}")
	b.settle(t)
	return b
}

// settle sends something that no promise is about, which makes the topics, until both gateways have partitions for good.
func (b *behindKafka) settle(t *testing.T) {
	t.Helper()
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("warm")
	m.SetEmptyGauge().DataPoints().AppendEmpty().SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	b.send(md)
	require.Eventually(t, func() bool {
		first, second := b.parts[0].partitions(), b.parts[1].partitions()
		for partition := range first {
			if second[partition] {
				return false // who had them all before gives half of them up
			}
		}
		return len(first) > 0 && len(second) > 0 && len(first)+len(second) == kafkaPartitions
	}, arrives, often, "the gateways do not share the partitions")
}

// session matches what a gateway logs when it is given partitions of metrics, or gives them up.
var session = regexp.MustCompile(`new group session begun.*"group": "otelcol-llm-metrics", "added": "(?:otlp_metrics\[([\d ]*)\])?", "lost": "(?:otlp_metrics\[([\d ]*)\])?"`)

// partitions are those of metrics that a gateway has.
func (g *gateway) partitions() map[string]bool {
	has := map[string]bool{}
	for _, m := range session.FindAllStringSubmatch(g.Logs(), -1) {
		for _, partition := range strings.Fields(m[2]) {
			delete(has, partition)
		}
		for _, partition := range strings.Fields(m[1]) {
			has[partition] = true
		}
	}
	return has
}

// waitHeard waits until the two have heard, and judged as far as that goes, all that was told up to a step.
func (b *behindKafka) waitHeard(t *testing.T, step int) {
	t.Helper()
	require.Eventually(t, func() bool {
		heard := 0.
		for team := range brokenTeam {
			for _, part := range b.parts {
				heard += part.counted(t, "otelcol_tenant_routing_items_sent_total", team)
			}
		}
		return int(heard) == (step+1)*len(brokenTeam)*teamReplicas*3 // points of a replica
	}, arrives, 10*time.Millisecond, "the gateways have not heard step %d", step)
}

// checkpoints is how many a gateway has written.
func (g *gateway) checkpoints(t *testing.T) int {
	t.Helper()
	return int(counted(t, g.telemetry, "otelcol_slo_checkpoint_duration_seconds", "", ""))
}

// startPart starts one of the two, again after a Kill.
func (b *behindKafka) startPart(t *testing.T, i int) {
	t.Helper()
	b.parts[i] = startGateway(t, b.destinations, fmt.Sprintf("gateway-%d", i), b.dirs[i], b.env,
		"builtin:gateway-kafka", "builtin:gateway-part", "yaml:"+quick+"lateness: 20m, idle_timeout: 20s}")
}

func (b *behindKafka) send(md pmetric.Metrics) {
	body, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
	b.agent.post("/v1/metrics", body, err)
}

// verdicts are what who judges has said up to a time, by series.
type verdicts map[string]float64

// events adds up all that counts of a team and a promise.
func (v verdicts) events(team, slo string) float64 {
	key := "slo_sli_events_total " + team + " " + slo + " "
	return v[key+"good"] + v[key+"bad"]
}

// everything are the events of a team and a promise.
const everything = float64(teamSteps * teamReplicas * teamEvents)

// of waits until somebody has judged all up to the end, and of each promise at least so many events count.
func (b *behindKafka) of(t *testing.T, who string, end time.Time, ttft, errors float64) (v verdicts) {
	t.Helper()
	at := end.Add(4 * time.Minute)
	require.Eventually(t, func() bool {
		all := b.metrics.samples(t, fmt.Sprintf(`timestamp(slo_state{instance=%q, state="no_data"}) >= %d`, who, end.Unix()), at)
		return len(all) == 4
	}, 2*arrives, time.Second, "%s has not judged everything", who)
	// Counters tell what the last checkpoint holds.
	require.Eventually(t, func() bool {
		v = b.said(t, who, at)
		for team := range brokenTeam {
			if v.events(team, "llm:chat:ttft:p50") < ttft || v.events(team, "llm:chat:errors:50") < errors {
				return false
			}
		}
		return true
	}, arrives, time.Second, "%s has not counted everything", who)
	time.Sleep(3 * time.Second) // what counts twice would come by then
	return b.said(t, who, at)
}

// said is what somebody has said up to a time.
func (b *behindKafka) said(t *testing.T, who string, at time.Time) verdicts {
	t.Helper()
	v := verdicts{}
	for _, s := range b.metrics.samples(t, fmt.Sprintf(`last_over_time({__name__=~"slo_(state|sli_events_total|violations_total|error_budget_remaining_ratio|objective)", instance=%q}[3h])`, who), at) {
		key := fmt.Sprint(s.labels["__name__"], " ", s.labels["tenant"], " ", s.labels["slo_id"], " ", s.labels["outcome"], s.labels["state"], s.labels["slo_policy"])
		require.NotContains(t, v, key)
		v[key] = s.value
	}
	return v
}

// events are the log events that somebody told of a tenant, by name and id of the violation.
func (b *behindKafka) events(t *testing.T, who, tenant string) []string {
	t.Helper()
	var all []string
	for _, r := range b.logs.records(t, tenant, fmt.Sprintf(`service.instance.id:=%q event_name:~"^slo.violation"`, who)) {
		all = append(all, fmt.Sprint(r["event_name"], " ", r["slo.violation.id"], " ", r["_time"]))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// marks say of each series whether a window was ever judged without all that was heard.
func (b *behindKafka) marks(t *testing.T, end time.Time) (all []float64) {
	t.Helper()
	for _, s := range b.metrics.samples(t, `max_over_time(slo_sli_incomplete{instance="judge"}[3h])`, end.Add(4*time.Minute)) {
		all = append(all, s.value)
	}
	return all
}

// Scenario: an agent puts what the replicas of two teams tell into Apache Kafka, from which two gateways take it, so that each hears some
// replicas of each team, and tells a third what it has heard. A gateway that hears everything judges the same beside them.
// Guarantees: both say the same: events, to the one, states, budgets and violations, which have the same ids.
func TestTwoGatewaysBehindKafkaJudgeAsOne(t *testing.T) {
	b := startBehindKafka(t)
	t0 := time.Now().UTC().Truncate(time.Hour).Add(-3 * time.Hour)
	for step := range teamSteps {
		b.send(teamsAt(t0, step))
		time.Sleep(teamPace)
	}
	end := t0.Add(time.Hour)
	alone, judge := b.of(t, "alone", end, everything, everything), b.of(t, "judge", end, everything, everything)
	assert.Equal(t, everything, alone.events("team-a", "llm:chat:ttft:p50"))
	assert.Equal(t, alone, judge)
	assert.Equal(t, []float64{0, 0, 0, 0}, b.marks(t, end))
	for team := range brokenTeam {
		told := b.events(t, "alone", team)
		assert.NotEmpty(t, told)
		assert.Equal(t, told, b.events(t, "judge", team))
	}
	t.Logf("%d series", len(alone))
}

// Scenario: as above, and in the middle of a window one of the two gateways is killed, and comes back on the same volume.
// Guarantees: every verdict and violation is that of the gateway that nobody killed. Of cumulative series nothing is lost; of deltas
// no more than came to the one that was killed in a checkpoint's interval, and nothing counts twice.
func TestAGatewayBehindKafkaThatIsKilledLosesAtMostAnInterval(t *testing.T) {
	b := startBehindKafka(t)
	t0 := time.Now().UTC().Truncate(time.Hour).Add(-3 * time.Hour)
	// It is killed a moment after a checkpoint has what was told before, in the middle of a window that is bad.
	const told, moment, gone = teamSteps/2 + 2, int(500 * time.Millisecond / teamPace), int(2 * time.Second / teamPace)
	before, killed := 0, teamSteps
	for step := range teamSteps {
		b.send(teamsAt(t0, step))
		if step == told {
			b.waitHeard(t, step)
			before = b.parts[0].checkpoints(t)
		}
		if step > told && killed == teamSteps && b.parts[0].checkpoints(t) > before {
			killed = step + moment
		}
		switch step {
		case killed:
			b.parts[0].Kill()
		case killed + gone:
			b.startPart(t, 0)
		}
		time.Sleep(teamPace)
	}
	require.Less(t, killed+gone, teamSteps, "no checkpoint was written")
	t.Logf("killed %d steps after all was heard", killed-told)
	end := t0.Add(time.Hour)
	// What came to one gateway in a checkpoint's interval and what writing it takes, if all came to that one.
	const interval = float64((time.Second+500*time.Millisecond)/teamPace) * teamReplicas * teamEvents
	alone, judge := b.of(t, "alone", end, everything, everything), b.of(t, "judge", end, everything, everything-interval)
	for key, want := range alone {
		got, ok := judge[key]
		require.True(t, ok, key)
		switch {
		case strings.HasPrefix(key, "slo_sli_events_total") && strings.Contains(key, "errors"):
			assert.GreaterOrEqual(t, want, got, "%s: something counts twice", key)
			assert.LessOrEqual(t, want-got, interval, key)
			t.Logf("%s: %g of %g", key, got, want)
		case strings.HasPrefix(key, "slo_error_budget") && strings.Contains(key, "errors"):
		default:
			assert.InDelta(t, want, got, 1e-9, key)
		}
	}
	assert.Len(t, judge, len(alone))
	assert.Equal(t, []float64{0, 0, 0, 0}, b.marks(t, end), "it was back before the judge went on without it")
	for team := range brokenTeam {
		assert.Equal(t, b.events(t, "alone", team), b.events(t, "judge", team))
	}
}

// Scenario: as above, and one of the two gateways dies in the middle of a window and stays away for longer than the judge waits.
// Guarantees: what the judge says of the time before is what the gateway says that hears everything. Everything after is marked, neither kept
// nor missed for certain, and nothing opens or closes by what is left.
func TestWhatIsJudgedWithoutAGatewaySaysSo(t *testing.T) {
	b := startBehindKafka(t)
	t0 := time.Now().UTC().Truncate(time.Hour).Add(-3 * time.Hour)
	for step := range teamSteps {
		b.send(teamsAt(t0, step))
		if step == teamSteps*7/8+7 { // it has told what is older than its lateness: half an hour
			b.waitHeard(t, step)
			time.Sleep(2 * time.Second) // and tells it to the judge
			b.parts[0].Kill()
		}
		time.Sleep(teamPace)
	}
	end := t0.Add(time.Hour)
	alone, judge := b.of(t, "alone", end, everything, everything), b.of(t, "judge", end, 0, 0)
	assert.Equal(t, []float64{1, 1, 1, 1}, b.marks(t, end))
	for key := range alone {
		if strings.HasPrefix(key, "slo_state ") && (strings.HasSuffix(key, " ok") || strings.HasSuffix(key, " violated")) {
			assert.InDelta(t, 0, judge[key], 0, key)
		}
	}
	for team := range brokenTeam {
		want, got := b.events(t, "alone", team), b.events(t, "judge", team)
		early := func(events []string) []string { return until(t, events, t0.Add(25*time.Minute)) }
		assert.NotEmpty(t, early(want))
		assert.Equal(t, early(want), early(got))
		assert.Equal(t, until(t, got, t0.Add(40*time.Minute)), got)
		assert.NotEqual(t, until(t, want, t0.Add(40*time.Minute)), want)
	}
}

// until are the events up to a time, which stands at their end.
func until(t *testing.T, events []string, end time.Time) (all []string) {
	t.Helper()
	for _, event := range events {
		at, err := time.Parse(time.RFC3339Nano, event[strings.LastIndex(event, " ")+1:])
		require.NoError(t, err)
		if !at.After(end) {
			all = append(all, event)
		}
	}
	return all
}

// Scenario: fifty namespaces send spans, log records and data points to an agent, claiming to be another tenant; Kafka is between it and two
// gateways. One more sends requests that are larger than a message may be.
// Guarantees: behind Kafka, too, each tenant of the real servers has its own items, each once, and no other.
func TestThroughKafkaEveryTenantHasItsOwn(t *testing.T) {
	kafka := startKafka(t)
	c := claiming{t, startAgent(t, kafka), "ns-00"}
	to := startDestinations(t)
	var g *gateway
	for i := range 2 {
		g = startGateway(t, to, fmt.Sprintf("gateway-%d", i), "", []string{"KAFKA_BROKERS=" + kafka}, "builtin:gateway-kafka", "builtin:gateway-part")
	}
	names := make([]string, namespaces)
	for k := range names {
		names[k] = fmt.Sprintf("ns-%02d", k)
	}
	const each, parts = 40, 4
	now := time.Now()
	for r := range parts {
		n := numbers{r * each / parts, (r + 1) * each / parts}
		c.spans(names, n, now)
		c.records(names, n, now)
		c.points(names, n, now)
	}
	const many = 50_000 // points or records of one resource, which are 1.3 MB at least
	large, all := []string{"large"}, numbers{0, many}
	c.spans(large, all, now)
	c.records(large, all, now)
	c.points(large, all, now)
	deadline := time.Now().Add(arrives)
	for _, namespace := range names {
		g.expect(t, namespace, each, now, deadline)
	}
	g.expect(t, large[0], many, now, deadline)
}
