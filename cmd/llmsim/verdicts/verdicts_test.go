// SPDX-License-Identifier: Apache-2.0

package verdicts

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

var update = flag.Bool("update", false, "rewrite the goldens in testdata")

// TestVerdictsOnProductionTraffic
// Scenario: a whole trace of production traffic is served by a fleet whose /metrics is scraped every 15 s, and which sends
// a span of each request.
// Guarantees: what is judged violated is, what is judged ok is, at_risk is said only where the buckets cannot tell, the
// true quantile lies within the bounds, no request is lost or counted twice; and none of it has changed since the golden.
func TestVerdictsOnProductionTraffic(t *testing.T) {
	for _, name := range []string{"conv", "code"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // whose clock is simulated time
				s, j := newSimulation(t, filepath.Join("testdata", name+".yaml")), startJudge(t)
				s.run(j, 2*evaluation)
				j.stop(t)
				assert.Empty(t, j.told.changed, "a verdict is told once and for all")
				table := compare(t, s, j)
				golden := filepath.Join("testdata", name+".golden")
				if *update {
					require.NoError(t, os.WriteFile(golden, []byte(table), 0o600))
				}
				want, err := os.ReadFile(golden)
				require.NoError(t, err, "write it by: go test ./cmd/llmsim/verdicts -update")
				assert.Equal(t, string(want), table)
			})
		})
	}
}

// compare holds every verdict against the truth, and returns both as a table.
func compare(t *testing.T, s *simulation, j *judge) string {
	var out strings.Builder
	fmt.Fprintf(&out, `%d requests, served by %d engines, scraped every %s. Of each promise and window:
  n, share, sli     the requests that its scrapes or spans show, the share of them that was good, and the exact quantile or ratio
  state … upper     what the connector says of them
  own n, own share  the requests that fell into it by their own time: a scrape tells of them up to %[3]s later, a span says when
`, len(s.requests), len(s.fleet.Replicas), interval)
	for i := range j.catalog.SLOs {
		s.compare(t, &j.catalog.SLOs[i], j.told, &out)
	}
	out.WriteString("\nviolations and burn rates\n")
	slices.Sort(j.told.log)
	for _, line := range j.told.log {
		fmt.Fprintln(&out, line)
	}
	return out.String()
}

// compare does so for one promise.
func (s *simulation) compare(t *testing.T, slo *openslo.SLO, told *told, out io.Writer) {
	shown, asWas := s.truths(slo)
	promised := fmt.Sprintf("%v good", slo.Objective.Target)
	if slo.Indicator.Threshold != nil {
		promised = fmt.Sprintf("%v at most %v s, %s", slo.Objective.Target, slo.Objective.Value, s.resolution(slo))
	}
	fmt.Fprintf(out, "\n%s: %s\nwindow to      n   share      sli   state       value    lower    upper   own n  own share\n", slo.ID, promised)

	states, total, good, otherwise := map[string]int{}, 0, 0, 0
	counted := newCounter(told.events[slo.ID])
	ends := slices.SortedFunc(maps.Keys(shown), time.Time.Compare)
	for _, end := range ends {
		where := fmt.Sprintf("%s, window to %s", slo.ID, timeOfDay(end))
		truth := shown[end]
		v, ok := told.verdicts[window{slo.ID, end}]
		require.True(t, ok, "%s: no verdict", where)
		prove(t, slo, truth, v, where)
		if n := counted.until(end); !toldLater(slo) {
			assert.InDelta(t, len(truth.values), n, 0, "%s: events", where)
		}
		states[v.state]++
		total, good = total+len(truth.values), good+truth.good

		own, ownShare := 0, "–"
		if w := asWas[end]; w != nil {
			own, ownShare = len(w.values), fmt.Sprintf("%.4f", w.share())
			if v.state != "at_risk" && w.kept(slo) != (v.state == "ok") {
				otherwise++
				ownShare += " *"
			}
		}
		fmt.Fprintf(out, "%s  %5d  %.4f  %7.4f   %-8s  %7.4f  %7.4f  %7.4f   %5d     %s\n",
			timeOfDay(end), len(truth.values), truth.share(), truth.sli(slo), v.state, v.value, v.lower, v.upper, own, ownShare)
	}
	fmt.Fprintf(out, "%d windows: %d ok, %d violated, %d at_risk; by the requests' own time %d would be judged otherwise (*)\n",
		len(ends), states["ok"], states["violated"], states["at_risk"], otherwise)
	t.Logf("%s: %v", slo.ID, states)

	assert.Equal(t, len(s.requests), total, slo.ID)
	assert.InDelta(t, total, counted.newest(), 0, "%s: events", slo.ID)
	if s.exact(slo) {
		assert.InDelta(t, good, told.good[slo.ID], 0, "%s: good events", slo.ID)
		assert.Zero(t, states["at_risk"], slo.ID)
	}
	for w, v := range told.verdicts {
		if w.slo == slo.ID && shown[w.end] == nil {
			assert.Equal(t, "no_data", v.state, "%s, window to %s: it has no request", slo.ID, timeOfDay(w.end))
		}
	}
}

// prove holds one verdict against the truth.
func prove(t *testing.T, slo *openslo.SLO, truth *truth, v verdict, where string) {
	switch v.state {
	case "ok":
		assert.True(t, truth.kept(slo), "%s: judged ok, but the share of good requests is %v", where, truth.share())
	case "violated":
		assert.False(t, truth.kept(slo), "%s: judged violated, but the share of good requests is %v", where, truth.share())
	case "at_risk":
		assert.Less(t, v.lower, slo.Objective.Value, where)
		assert.Greater(t, v.upper, slo.Objective.Value, where)
	default:
		assert.Fail(t, "no verdict on requests", "%s: %s", where, v.state)
	}
	sli := truth.sli(slo)
	assert.LessOrEqual(t, v.lower, sli*(1+1e-9), where)
	assert.GreaterOrEqual(t, v.upper, sli*(1-1e-9), where)
	if slo.Indicator.Ratio != nil {
		assert.InDelta(t, sli, v.value, 1e-12, where)
	}
}
