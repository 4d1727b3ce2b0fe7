// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Scenario: an hour of histograms comes in by a thousand requests; meanwhile another SLO in the same files appears, is
// edited, is broken and goes, again and again, and the catalog is reloaded each time.
// Guarantees: no point is lost, and the verdict on the SLO that nobody touched is the same as without any of it.
func TestAReloadUnderLoadLeavesTheOthersAlone(t *testing.T) {
	parallel(t)
	t0 := origin()
	points := hourOf(t0, 1000, 4, 5, 6, 7)
	quiet := runHour(t, t0, points, 10)

	j := startJudge(t, ttftSLO)
	other := strings.NewReplacer("chat-ttft", "chat-other", "llm:chat:ttft:p95", "llm:chat:other:p95").Replace(ttftSLO)
	versions := []string{
		ttftSLO + "---\n" + other,
		ttftSLO + "---\n" + strings.Replace(other, "value: 800", "value: 300", 1),
		ttftSLO + "---\n" + strings.Replace(other, "target: 0.95", "target: 95", 1), // a mistake
		ttftSLO,
	}
	file := filepath.Join(j.dir, "slo.yaml")
	swap := func(i int) {
		next := file + ".next"
		require.NoError(t, os.WriteFile(next, []byte(versions[i%len(versions)]+strings.Repeat("\n", i%7)), 0o600))
		require.NoError(t, os.Rename(next, file))
	}
	// read is how many versions were read.
	read := func() int {
		resp, err := http.Get(j.metrics)
		require.NoError(t, err)
		defer resp.Body.Close()
		all := families(t, resp.Body)
		loads, _ := sumOf(all, "otelcol_slo_catalog_loads", "")
		failures, _ := sumOf(all, "otelcol_slo_catalog_load_failures", "")
		return int(loads + failures)
	}
	turn, before := 0, -1
	for batch := range slices.Chunk(points, 10) {
		if turn%5 == 0 { // a file must stay as it is until it is read
			require.Eventually(t, func() bool { return read() > before }, patience, 10*time.Millisecond, "version %d is not read", turn/5)
			before = read()
			swap(turn / 5)
		}
		turn++
		j.send(batchOf(batch))
		time.Sleep(60 * time.Millisecond)
	}
	j.send(batchOf([]ttftPoint{{at: t0.Add(time.Hour)}})) // nothing comes after the hour
	j.judged(t0.Add(time.Hour), "llm:chat:ttft:p95")
	assert.Greater(t, before, 15, "the catalog was in fact reloaded")
	assert.Contains(t, j.Logs(), "95 is not in [0, 1)")
	t.Logf("%d catalogs in %d requests", before, turn)

	var own []event
	for _, e := range j.events(t0) {
		if slices.Contains(e.slos, any("llm:chat:ttft:p95")) {
			own = append(own, e)
		}
	}
	assert.Equal(t, quiet.events, own)
	for name, want := range map[string]float64{"good": quiet.good, "bad": quiet.bad} {
		p, ok := j.newest("slo.sli.events", map[string]string{"slo_id": "llm:chat:ttft:p95", "outcome": name})
		require.True(t, ok)
		assert.InDelta(t, want, p.value, 0, fmt.Sprint(name))
	}
}
