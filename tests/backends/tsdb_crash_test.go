// SPDX-License-Identifier: Apache-2.0

//go:build backends

package backends

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

var (
	tsdbKills = flag.Int("tsdb-kills", 6, "how often the Collector is killed while its database is written")
	tsdbSeed  = flag.Uint64("tsdb-seed", 1, "decides when; 0 is another each time")
)

const (
	crashSenders = 4
	crashSeries  = 50              // of each
	crashStep    = 5 * time.Second // of the time in the samples, so that blocks are written meanwhile
	crashLate    = 100             // steps by which what comes late is late
	lateSeries   = 10
	// lateChunk is how many late samples of a series the database keeps in memory before it makes a chunk of them.
	lateChunk = 32
)

// crowd are senders of one story, each with series of its own, told in batches: batch n is gauges of its time, a native histogram, a
// series that few other batches have, and gauges of a hundred steps ago, which come late. It remembers which batches were
// acknowledged, in order.
type crowd struct {
	begin time.Time

	mu     sync.Mutex
	next   int
	acked  []int
	unsure []int // sent, and nobody said what became of it
	enough int   // acknowledged, after which the end comes
	end    func()
}

func (c *crowd) batch(sender, n int) pmetric.Metrics {
	md := pmetric.NewMetrics()
	at := c.begin.Add(time.Duration(n) * crashStep)
	w := newWriter(md, map[string]any{"service.name": "chat"}, at)
	each := func(metric string, series int, value float64) {
		for i := range series {
			w.attributes = map[string]any{"sender": sender, "i": i}
			w.gauge(metric, "", value)
		}
	}
	each("crash", crashSeries, float64(n))
	w.attributes = map[string]any{"sender": sender, "n": n / 20}
	w.gauge("churn", "", float64(n))
	w.attributes = map[string]any{"sender": sender}
	k := uint64(n)
	w.exponential("native", "", 3, []uint64{k, 2 * k, k / 3}, k/5, c.begin, pmetric.AggregationTemporalityCumulative)
	if n >= crashLate {
		w.at = pcommon.NewTimestampFromTime(at.Add(crashStep / 2))
		each("late", lateSeries, -1) // which makes the next one late
		w.at = pcommon.NewTimestampFromTime(c.begin.Add(time.Duration(n-crashLate) * crashStep))
		each("late", lateSeries, float64(n-crashLate))
	}
	return md
}

// send sends from all senders until the Collector is no more.
func (c *crowd) send(t testing.TB, k *keeper) {
	var all sync.WaitGroup
	for sender := range crashSenders {
		all.Go(func() {
			for {
				c.mu.Lock()
				n := c.next
				c.next++
				c.mu.Unlock()
				status, text := k.offer(t, c.batch(sender, n))
				c.mu.Lock()
				switch status {
				case http.StatusOK:
					if c.acked = append(c.acked, n); len(c.acked) == c.enough {
						go c.end()
					}
				case 0:
					c.unsure = append(c.unsure, n)
				default:
					t.Errorf("batch %d: %d %s", n, status, text)
				}
				c.mu.Unlock()
				if status != http.StatusOK {
					return
				}
			}
		})
	}
	all.Wait()
}

// stored are the batches of which a metric has a sample in all of its series, or in some of them only.
func (c *crowd) stored(t testing.TB, k *keeper, metric string, series int) (whole, partly map[int]bool) {
	t.Helper()
	c.mu.Lock()
	end := c.begin.Add(time.Duration(c.next+1) * crashStep)
	c.mu.Unlock()
	data, raw := k.get(t, "query", url.Values{"query": {fmt.Sprintf("%s[%ds]", metric, int(end.Sub(c.begin).Seconds())+10)}, "time": {fmt.Sprint(end.Unix())}})
	results, ok := data.(map[string]any)
	require.True(t, ok, raw)
	seen := map[int]int{}
	for _, s := range results["result"].([]any) {
		for _, v := range s.(map[string]any)["values"].([]any) {
			pair := v.([]any)
			value, err := strconv.ParseFloat(pair[1].(string), 64)
			require.NoError(t, err)
			if value < 0 {
				continue
			}
			n := int(value)
			assert.Equal(t, float64(c.begin.Add(time.Duration(n)*crashStep).UnixMilli())/1000, pair[0], "a sample is at its own time")
			seen[n]++
		}
	}
	whole, partly = map[int]bool{}, map[int]bool{}
	for n, count := range seen {
		require.LessOrEqual(t, count, series)
		(map[bool]map[int]bool{true: whole, false: partly})[count == series][n] = true
	}
	return whole, partly
}

// sound says whether Prometheus's own tool can read all of a directory that nobody uses.
func sound(t testing.TB, directory string) {
	t.Helper()
	for _, meta := range blocks(t, directory) {
		run(t, promtool(t), "tsdb", "analyze", directory, filepath.Base(filepath.Dir(meta)))
	}
	if len(blocks(t, directory)) > 0 {
		run(t, promtool(t), "tsdb", "list", directory)
	}
	assert.Contains(t, run(t, promtool(t), "tsdb", "dump", `--match={__name__="crash",i="0"}`, directory), `__name__="crash"`)
}

// Scenario: the Collector is killed again and again, at moments drawn by lot, while four senders send, also late samples, and blocks
// are written; each time it is started again on the same directory. In the end the power fails, too: the end of the log is torn.
// Guarantees: after each kill promtool reads the directory, the Collector opens it, and has whole every batch that it had said it
// took. Of what came late it can lack the newest chunk of each series, when it is killed while it writes a block of just that: the
// TSDB marks such a chunk as written before the kernel has it. What was torn off the log is lost, and nothing from before that.
func TestKillsAtAnyMomentLoseNothingThatWasTaken(t *testing.T) {
	seed := *tsdbSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	random := rand.New(rand.NewPCG(seed, 5))
	t.Logf("-tsdb-seed=%d", seed)
	directory := t.TempDir()
	const settings = "min_free_bytes: 0, query: {max_samples: 50000000}"
	c := &crowd{begin: time.Now().Truncate(time.Minute).Add(-14 * 24 * time.Hour)}
	k := keeping(t, directory, settings)
	inFlight, kept, lateLost := 0, 0, 0
	lost := func(metric string, series, shift int) []int {
		t.Helper()
		whole, _ := c.stored(t, k, metric, series)
		return slices.DeleteFunc(slices.Clone(c.acked), func(n int) bool { return n < shift || whole[n-shift] })
	}
	check := func() {
		t.Helper()
		assert.Empty(t, lost("crash", crashSeries, 0), "batches that were acknowledged and are not there")
		assert.Empty(t, lost("churn", 1, 0), "batches that were acknowledged and are not there")
		natives, there := k.number(t, fmt.Sprintf("sum(count_over_time(native[%ds]))", (c.next+2)*int(crashStep.Seconds())), c.begin.Add(time.Duration(c.next+1)*crashStep))
		assert.True(t, there)
		assert.GreaterOrEqual(t, natives, float64(len(c.acked)), "native histograms")
		late := len(lost("late", lateSeries, crashLate))
		assert.LessOrEqual(t, late-lateLost, crashSenders*lateChunk, "late samples that were acknowledged and are not there")
		lateLost = late
	}
	for round := range *tsdbKills {
		sent := len(c.acked)
		killed := make(chan struct{})
		c.enough = sent + 500 + random.IntN(5500)
		moment := time.Duration(random.IntN(20_000)) * time.Microsecond
		c.end = func() {
			time.Sleep(moment)
			k.Kill()
			close(killed)
		}
		c.send(t, k)
		<-killed
		sound(t, directory)
		k = keeping(t, directory, settings)
		check()
		whole, _ := c.stored(t, k, "crash", crashSeries)
		inFlight += len(c.unsure)
		for _, n := range c.unsure {
			if whole[n] {
				kept++
			}
		}
		c.unsure = nil
		t.Logf("round %d: killed after %d batches of %d samples; %d blocks; repairs: %g", round, len(c.acked)-sent, crashSeries+2+2*lateSeries,
			len(blocks(t, directory)), k.counted(t, "otelcol_tsdb_repairs_total", "", ""))
	}
	assert.NotEmpty(t, blocks(t, directory), "the kills came while blocks were written, too")
	t.Logf("of %d acknowledged batches none is lost, but the late samples of %d; of %d that were under way, %d are there", len(c.acked), lateLost, inFlight, kept)

	k.Kill()
	torn := tear(t, directory, 64<<10)
	k = keeping(t, directory, settings)
	assert.InDelta(t, 1, k.counted(t, "otelcol_tsdb_repairs_total", "", ""), 0)
	assert.Contains(t, k.Logs(), "the database was damaged and is repaired")
	whole, _ := c.stored(t, k, "crash", crashSeries)
	from := slices.IndexFunc(c.acked, func(n int) bool { return !whole[n] })
	require.GreaterOrEqual(t, from, 0, "64 KiB hold something")
	// A sample takes a byte at least. Not all that was torn off need be lost: chunks that were full are in files of their own, too.
	assert.LessOrEqual(t, int64(len(c.acked)-from), torn/crashSeries, "nothing from before what was torn off is lost")
	t.Logf("with the last %d bytes of the log, %d batches of %d are lost, or stand behind one that is", torn, len(c.acked)-from, len(c.acked))
	k.send(t, c.batch(0, c.next))
	assert.Equal(t, 0, k.Stop())
	sound(t, directory)
}

// Scenario: as after an outage, four senders send a backlog of the same series at once, so that their samples overtake each other; the
// Collector is killed meanwhile, three times. Guarantees: it has whole every batch that it had said it took.
func TestABacklogInAnyOrderSurvivesAKill(t *testing.T) {
	for round := range 3 {
		directory := t.TempDir()
		k := keeping(t, directory, "min_free_bytes: 0")
		begin := time.Now().Truncate(time.Second).Add(-50 * time.Minute)
		var (
			mu    sync.Mutex
			next  int
			acked []int
			all   sync.WaitGroup
		)
		killed := make(chan struct{})
		end := func() {
			k.Kill()
			close(killed)
		}
		for range crashSenders {
			all.Go(func() {
				for {
					mu.Lock()
					n := next
					next++
					mu.Unlock()
					if status, _ := k.offer(t, values("backlog", 0, 20, float64(n), begin.Add(time.Duration(n)*100*time.Millisecond))); status != http.StatusOK {
						return
					}
					mu.Lock()
					if acked = append(acked, n); len(acked) == 4000+round*1500 {
						go end()
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
		<-killed
		k = keeping(t, directory, "min_free_bytes: 0")
		data, raw := k.get(t, "query", url.Values{"query": {"count_over_time(backlog[1h])"}, "time": {fmt.Sprint(begin.Add(51 * time.Minute).Unix())}})
		results := data.(map[string]any)["result"].([]any)
		require.Len(t, results, 20, raw)
		for _, r := range results {
			n, err := strconv.Atoi(r.(map[string]any)["value"].([]any)[1].(string))
			require.NoError(t, err)
			assert.GreaterOrEqual(t, n, len(acked))
		}
		t.Logf("round %d: %d batches were taken", round, len(acked))
	}
}

// tear cuts bytes off the end of the log, as a power failure does with what the kernel has not written, and says how many.
func tear(t testing.TB, directory string, n int64) (torn int64) {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(directory, "wal", "0*"))
	require.NoError(t, err)
	slices.Sort(segments)
	for _, segment := range slices.Backward(segments) {
		info, err := os.Stat(segment)
		require.NoError(t, err)
		cut := min(n-torn+7, info.Size())
		require.NoError(t, os.Truncate(segment, info.Size()-cut))
		if torn += cut; torn >= n {
			break
		}
	}
	return torn
}

// Scenario: while the Collector is down, bytes of its files are damaged: in the midst of the log, in a block's index, in a block's
// chunks. Guarantees: it starts, says what it has lost and counts it, answers for the rest, and what is damaged is kept aside.
func TestDamageIsSaidAndTheRestIsThere(t *testing.T) {
	origin := backfilled(t, 1, time.Now().Truncate(2*time.Hour).Add(-4*time.Hour))
	k := keeping(t, origin, "min_free_bytes: 0")
	end := time.Now().Truncate(time.Second)
	for n := range 600 {
		k.send(t, values("g", 0, 500, float64(n)+rand.Float64(), end.Add(time.Duration(n-600)*5*time.Second)))
	}
	require.Equal(t, 0, k.Stop())
	before := len(blocks(t, origin))
	f := func(name, pattern, aside string, want func(t *testing.T, k *keeper)) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			directory := filepath.Join(t.TempDir(), "db")
			require.NoError(t, os.CopyFS(directory, os.DirFS(origin)))
			files, err := filepath.Glob(filepath.Join(directory, pattern))
			require.NoError(t, err)
			require.NotEmpty(t, files)
			file := files[0]
			for _, other := range files { // the largest, as the first may be empty
				if a, err := os.Stat(other); err == nil {
					if b, err := os.Stat(file); err == nil && a.Size() > b.Size() {
						file = other
					}
				}
			}
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			at := len(data) / 2
			for i := range min(64, len(data)-at) {
				data[at+i] ^= 0xa5
			}
			if strings.HasSuffix(file, "index") {
				data = data[:at]
			}
			require.NoError(t, os.WriteFile(file, data, 0o600))
			k := keeping(t, directory, "min_free_bytes: 0")
			assert.Equal(t, 0, strings.Count(k.Logs(), "panic"))
			if aside != "" {
				assert.InDelta(t, 1, k.counted(t, "otelcol_tsdb_repairs_total", "", ""), 0)
				assert.Contains(t, k.Logs(), `"part": "`+aside)
			}
			want(t, k)
			k.send(t, values("after", 0, 1, 1, end.Add(time.Second)))
			_, there := k.number(t, "after", end.Add(time.Second))
			assert.True(t, there)
			assert.Equal(t, 0, k.Stop())
			for _, meta := range blocks(t, directory) {
				run(t, promtool(t), "tsdb", "analyze", directory, filepath.Base(filepath.Dir(meta)))
			}
		})
	}
	f("log", "wal/0*", "wal", func(t *testing.T, k *keeper) {
		n, _ := k.number(t, "sum(count_over_time(g[2h]))", end)
		assert.Positive(t, n)
		assert.Less(t, n, 600.*500)
		assert.Len(t, blocks(t, k.directory), before)
	})
	f("index of a block", "01*/index", "01", func(t *testing.T, k *keeper) {
		n, _ := k.number(t, "sum(count_over_time(g[2h]))", end)
		assert.InDelta(t, 600*500, n, 0)
		assert.Len(t, blocks(t, k.directory), before-1)
		aside, err := filepath.Glob(filepath.Join(k.directory, "damaged", "01*"))
		require.NoError(t, err)
		assert.Len(t, aside, 1)
	})
}
