// SPDX-License-Identifier: Apache-2.0

//go:build backends

package backends

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// values is a batch of n series of a gauge, beginning with one, that have a value at a time.
func values(name string, first, n int, value float64, at time.Time) pmetric.Metrics {
	md := pmetric.NewMetrics()
	w := newWriter(md, map[string]any{"service.name": "chat"}, at)
	for i := range n {
		w.attributes = map[string]any{"i": first + i}
		w.gauge(name, "", value)
	}
	return md
}

// Scenario: the database is on a disk of 16 MiB, of which 4 have to stay free, and it is sent more than that.
// Guarantees: the sender is told to try again, with the reason, queries go on, and when there is room again so does it, with all
// that it had taken. The disk is never quite full.
func TestAFullDiskIsWaitedFor(t *testing.T) {
	directory, inside := onDisk(t, "size=16m")
	k := keeping(t, directory, "min_free_bytes: 4194304")
	ballast := filepath.Join(inside(k.PID()), "ballast")
	require.NoError(t, os.WriteFile(ballast, make([]byte, 8<<20), 0o600))

	end := time.Now().Truncate(time.Second)
	begin := end.Add(-50 * time.Minute)
	taken, text := 0, ""
	for taken < 3000 && !strings.Contains(text, "min_free_bytes is 4194304") {
		var status int
		if status, text = k.offer(t, values("g", 0, 2000, float64(taken)*1.000001, begin.Add(time.Duration(taken)*100*time.Millisecond))); status == http.StatusOK {
			taken++
			continue
		}
		require.Equal(t, http.StatusServiceUnavailable, status, "a sender tries such an answer again")
		require.Contains(t, text, "no room on the disk")
	}
	require.Positive(t, taken)
	assert.True(t, k.Running())
	n, _ := k.number(t, `sum(count_over_time(g[1h]))`, end)
	assert.InDelta(t, 2000*taken, n, 0)

	require.NoError(t, os.Remove(ballast))
	require.Eventually(t, func() bool {
		status, _ := k.offer(t, values("after", 0, 1, 1, end))
		return status == http.StatusOK
	}, arrives, 100*time.Millisecond)
	_, there := k.number(t, `after`, end)
	assert.True(t, there)
	assert.Equal(t, 0, k.Stop())
	t.Logf("%d batches of 2,000 samples were taken before the disk was full", taken)
}

// fill writes a file until nothing goes onto its disk.
func fill(t testing.TB, path string) {
	t.Helper()
	file, err := os.Create(path)
	require.NoError(t, err)
	for n := 1 << 20; n > 0; {
		if _, err = file.Write(make([]byte, n)); err != nil {
			require.ErrorIs(t, err, syscall.ENOSPC)
			n /= 2
		}
	}
	_ = file.Close() // it is as full as it can be
}

// onFullDisk is onDisk with the files of a directory already there, and ballast in what is left.
func onFullDisk(t testing.TB, options, files string) (directory string, inside func(pid int) string) {
	t.Helper()
	before := filepath.Join(t.TempDir(), "before")
	script := "#!/bin/sh\ncp -a " + files + "/. \"$DISK\"\nhead -c 1G /dev/zero >\"$DISK\"/ballast 2>/dev/null\nexec " + spawn.Binary(t) + " \"$@\"\n"
	require.NoError(t, os.WriteFile(before, []byte(script), 0o700))
	t.Setenv("OTELCOL_LLM_BIN", before)
	directory, inside = onDisk(t, options)
	t.Setenv("DISK", directory)
	return directory, inside
}

// Scenario: nothing has to stay free, the disk is as good as full from what is sent, and then quite full of something else, when chunks
// are due to be written; the Collector is ended, and started on a disk that is as full; then there is room.
// Guarantees: the Collector lives all the time, senders are told to try again, and why; what was taken can be asked for as long as it is
// open. On the full disk it is not opened, which is said, until there is room, and then all that was taken is there.
func TestADiskThatIsFullToTheBrimLosesNothing(t *testing.T) {
	end := time.Now().Truncate(time.Second)
	begin := end.Add(-50 * time.Minute)
	copied, taken := filepath.Join(t.TempDir(), "copy"), 0
	all := func(k *keeper) float64 {
		n, _ := k.number(t, `sum(count_over_time(g[1h]))`, end)
		return n
	}
	t.Run("full", func(t *testing.T) {
		directory, inside := onDisk(t, "size=16m")
		k := keeping(t, directory, "min_free_bytes: 0")
		status, text := http.StatusOK, ""
		for ; taken < 3000; taken++ {
			if status, text = k.offer(t, values("g", 0, 2000, float64(taken)*1.000001, begin.Add(time.Duration(taken)*100*time.Millisecond))); status != http.StatusOK {
				break
			}
		}
		require.Equal(t, http.StatusServiceUnavailable, status, text)
		assert.Contains(t, text, "may be needed to write what is in memory")
		require.NoError(t, os.CopyFS(copied, os.DirFS(inside(k.PID()))))
		fill(t, filepath.Join(inside(k.PID()), "ballast"))
		require.Eventually(t, func() bool {
			return strings.Contains(k.Logs(), "chunks and blocks are not written until there is room on the disk")
		}, 3*time.Minute, 100*time.Millisecond)
		status, text = k.offer(t, values("g", 0, 1, 1, end))
		require.Equal(t, http.StatusServiceUnavailable, status, text)
		assert.Contains(t, text, ": 0 bytes of the disk")
		assert.InDelta(t, 2000*taken, all(k), 0)
		assert.Equal(t, 0, k.Stop())
	})
	directory, inside := onFullDisk(t, "size=16m", copied)
	k := keeping(t, directory, "min_free_bytes: 0")
	assert.Contains(t, k.Logs(), "the database is not open: data is refused, and queries are not answered, until there is room on the disk")
	status, text := k.offer(t, values("g", 0, 1, 1, end))
	require.Equal(t, http.StatusServiceUnavailable, status, text)
	a, _ := k.answer(t, "query", url.Values{"query": {"g"}})
	assert.Equal(t, http.StatusServiceUnavailable, a.code)
	assert.Contains(t, a.Error, "the database is not open yet")

	require.NoError(t, os.Remove(filepath.Join(inside(k.PID()), "ballast")))
	require.Eventually(t, func() bool {
		status, _ := k.offer(t, values("after", 0, 1, 1, end))
		return status == http.StatusOK
	}, time.Minute, 100*time.Millisecond)
	assert.InDelta(t, 2000*taken, all(k), 0)
	assert.Equal(t, 0, k.Stop())
}

// Guarantees: a directory that cannot be written, and one that another Collector has, are said to be so, and not touched.
func TestADirectoryThatIsNotOursKeepsTheCollectorFromStarting(t *testing.T) {
	refused := func(t *testing.T, directory, want string) {
		t.Helper()
		k := startKeeping(t, directory, "min_free_bytes: 0")
		require.Eventually(t, func() bool { return !k.Running() }, arrives, 10*time.Millisecond)
		assert.Equal(t, 1, k.Stop())
		assert.Contains(t, k.Logs(), want)
		assert.NotContains(t, k.Logs(), "panic")
	}
	t.Run("read only", func(t *testing.T) {
		directory, _ := onDisk(t, "size=1m,ro")
		refused(t, directory, "directory "+directory+": must be writable")
	})
	t.Run("in use", func(t *testing.T) {
		k := keeping(t, t.TempDir(), "min_free_bytes: 0")
		refused(t, k.directory, "directory "+k.directory+": another process, or another tsdb exporter, uses it: give each its own")
		status, text := k.offer(t, values("g", 0, 1, 1, time.Now()))
		assert.Equal(t, http.StatusOK, status, text)
	})
}

// Scenario: 120,000 series come where 100,000 may be, and questions that cost more than they may.
// Guarantees: what is too much is refused and counted or said, and all else goes on.
func TestTooManySeriesAndTooDearQuestionsAreRefused(t *testing.T) {
	k := keeping(t, t.TempDir(), "min_free_bytes: 0, max_series: 100000, query: {max_samples: 250000, timeout: 50s, max_length: 2000}")
	end := time.Now().Truncate(time.Second)
	for first := 0; first < 120_000; first += 2000 {
		k.send(t, values("g", first, 2000, 1, end.Add(-time.Minute)))
	}
	assert.InDelta(t, 100_000, k.counted(t, "otelcol_tsdb_series", "", ""), 0)
	assert.InDelta(t, 20_001, k.counted(t, "otelcol_tsdb_samples_refused_total", "reason", "series_limit"), 1, "target_info may be one")
	k.send(t, values("g", 0, 2000, 2, end))
	n, _ := k.number(t, `count(g == 2)`, end)
	assert.InDelta(t, 2000, n, 0, "those that are there go on")
	n, _ = k.number(t, `count(g)`, end)
	assert.InDelta(t, 99_999, n, 1)

	f := func(want int, kind, text, path string, form url.Values) {
		t.Helper()
		a, _ := k.answer(t, path, form)
		assert.Equal(t, want, a.code)
		assert.Equal(t, kind, a.ErrorType)
		assert.Contains(t, a.Error, text)
	}
	f(422, "execution", "query processing would load too many samples into memory in query execution", "query", url.Values{"query": {"g * on (i) g"}, "time": {fmt.Sprint(end.Unix())}})
	f(400, "bad_data", "exceeded maximum resolution of 11,000 points per timeseries", "query_range", url.Values{"query": {"g"}, "start": {"0"}, "end": {"100000"}, "step": {"1"}})
	f(400, "bad_data", "query: has 3001 bytes, and query::max_length is 2000", "query", url.Values{"query": {"1" + strings.Repeat("+1", 1500)}})
	assert.Equal(t, 0, k.Stop())
}

// Scenario: a sender's clock, and with it the newest sample, is nine minutes ahead; another's a day ahead, a third's stands at 1970.
// Guarantees: the first is taken, and so is what then comes with the right time; the others are refused, with a reason.
func TestAClockThatJumpsCostsOnlyItsOwnSamples(t *testing.T) {
	k := keeping(t, t.TempDir(), "min_free_bytes: 0")
	now := time.Now().Truncate(time.Second)
	k.send(t, values("g", 0, 1, 1, now.Add(9*time.Minute)))
	k.send(t, values("g", 0, 1, 2, now))
	k.send(t, values("g", 1, 1, 3, now.Add(24*time.Hour)))
	k.send(t, values("g", 2, 1, 4, time.Unix(0, 0)))
	k.send(t, values("g", 3, 1, 5, now.Add(-2*time.Hour)))
	for at, want := range map[time.Time]float64{now: 2, now.Add(9 * time.Minute): 1} {
		got, _ := k.number(t, `g`, at)
		assert.InDelta(t, want, got, 0)
	}
	for reason, want := range map[string]float64{"in_future": 1, "out_of_bounds": 1} {
		assert.InDelta(t, want, k.counted(t, "otelcol_tsdb_samples_refused_total", "reason", reason), 0, reason)
	}
	assert.Positive(t, k.counted(t, "otelcol_tsdb_samples_refused_total", "reason", "too_old"))
	assert.Equal(t, 0, k.Stop())
}

// backfilled is a directory with blocks of the last days, a sample every ten minutes, as promtool makes them.
func backfilled(t testing.TB, days int, end time.Time) string {
	t.Helper()
	var text strings.Builder
	text.WriteString("# TYPE old gauge\n")
	for at := end.Add(-time.Duration(days) * 24 * time.Hour); at.Before(end); at = at.Add(10 * time.Minute) {
		for i := range 20 {
			fmt.Fprintf(&text, "old{i=\"%d\"} %d %d\n", i, at.UnixNano()%1009, at.Unix())
		}
	}
	text.WriteString("# EOF\n")
	directory := t.TempDir()
	input := spawnFile(t, text.String())
	run(t, promtool(t), "tsdb", "create-blocks-from", "openmetrics", "--quiet", input, directory)
	return directory
}

func spawnFile(t testing.TB, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "input.txt")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// blocks are those in a directory. Folders with more in their name are about to become one, or to be deleted.
func blocks(t testing.TB, directory string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(directory, "01"+strings.Repeat("?", 24), "meta.json"))
	require.NoError(t, err)
	return found
}

// Guarantees: blocks of which all is older than the retention are deleted, and so are the oldest when all are too large; what is
// younger stays.
func TestRetentionDeletesByTimeAndBySize(t *testing.T) {
	end := time.Now().Truncate(2 * time.Hour).Add(-4 * time.Hour)
	const days = 4
	t.Run("time", func(t *testing.T) {
		directory := backfilled(t, days, end)
		before := len(blocks(t, directory))
		k := keeping(t, directory, "min_free_bytes: 0, retention: 1d")
		require.Eventually(t, func() bool { return len(blocks(t, directory)) < before/2 }, arrives, 50*time.Millisecond)
		n, _ := k.number(t, fmt.Sprintf(`max(count_over_time(old[%dd]))`, days+1), end)
		assert.GreaterOrEqual(t, n, 20.*6-24, "a day, but for the hours after the end")
		assert.LessOrEqual(t, n, 30.*6)
		assert.Equal(t, 0, k.Stop())
		t.Logf("of %d blocks %d were left", before, len(blocks(t, directory)))
	})
	t.Run("size", func(t *testing.T) {
		directory := backfilled(t, days, end)
		before := len(blocks(t, directory))
		most := size(t, directory) / 2
		k := keeping(t, directory, fmt.Sprintf("min_free_bytes: 0, max_bytes: %d", most))
		require.Eventually(t, func() bool { return size(t, directory) <= most }, arrives, 50*time.Millisecond)
		assert.Positive(t, len(blocks(t, directory)))
		_, newest := k.number(t, `max(last_over_time(old[3h]))`, end)
		_, oldest := k.number(t, `max(last_over_time(old[3h]))`, end.Add(-days*24*time.Hour+4*time.Hour))
		assert.True(t, newest)
		assert.False(t, oldest)
		assert.Equal(t, 0, k.Stop())
		t.Logf("of %d blocks %d were left within %d bytes", before, len(blocks(t, directory)), most)
	})
}

// size is that of the blocks in a directory.
func size(t testing.TB, directory string) (sum int64) {
	t.Helper()
	for _, meta := range blocks(t, directory) {
		for _, pattern := range []string{"meta.json", "index", "tombstones", "chunks/*"} {
			files, err := filepath.Glob(filepath.Join(filepath.Dir(meta), pattern))
			require.NoError(t, err)
			for _, file := range files {
				if info, err := os.Stat(file); err == nil {
					sum += info.Size()
				}
			}
		}
	}
	return sum
}
