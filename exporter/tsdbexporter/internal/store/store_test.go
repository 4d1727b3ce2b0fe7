// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("go.opencensus.io/stats/view.(*worker).start"))
}

func options(dir string) Options {
	return Options{Directory: dir, Retention: 15 * 24 * time.Hour, OutOfOrderWindow: time.Hour, MaxSeries: 1000, MaxExemplars: 10}
}

func open(t testing.TB, opts Options) *Store {
	t.Helper()
	s, err := Open(opts, promslog.NewNopLogger())
	require.NoError(t, err)
	return s
}

// fill appends a sample a minute to ten series, and makes blocks of what is old enough.
func fill(t testing.TB, s *Store, begin, end time.Time) {
	t.Helper()
	for at := begin; at.Before(end); at = at.Add(time.Minute) {
		app := s.Append(t.Context())
		for i := range 10 {
			_, err := app.Append(0, labels.FromStrings("__name__", "m", "i", fmt.Sprint(i)), 0, at.UnixMilli(), rand.Float64(), nil, nil, storage.AOptions{MetricFamilyName: "m"})
			require.NoError(t, err)
		}
		require.NoError(t, app.Commit())
		require.Zero(t, app.Refused)
	}
	require.NoError(t, s.Compact(t.Context()))
}

// samples is how many samples of a series can be read.
func samples(t testing.TB, s *Store) (n int) {
	t.Helper()
	q, err := s.Querier(math.MinInt64, math.MaxInt64)
	require.NoError(t, err)
	defer func() { assert.NoError(t, q.Close()) }()
	set := q.Select(t.Context(), true, nil, labels.MustNewMatcher(labels.MatchEqual, "i", "3"))
	for set.Next() {
		for it := set.At().Iterator(nil); it.Next() != chunkenc.ValNone; {
			n++
		}
	}
	require.NoError(t, set.Err())
	return n
}

var end = time.Now().Truncate(2 * time.Hour)

// filled is the directory of a database of 20 hours that is closed, and the names of its blocks.
func filled(t testing.TB) (dir string, blocks []string) {
	t.Helper()
	dir = t.TempDir()
	s := open(t, options(dir))
	fill(t, s, end.Add(-20*time.Hour), end)
	for _, b := range s.Blocks() {
		blocks = append(blocks, b.Meta().ULID.String())
	}
	require.Equal(t, 20*60, samples(t, s))
	require.NoError(t, s.Close())
	require.NotEmpty(t, blocks)
	return dir, blocks
}

// Guarantees: a block that cannot be opened is set aside, said so, and the rest is there.
func TestADamagedBlockIsSetAside(t *testing.T) {
	f := func(name string, damage func(t *testing.T, block string)) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			dir, blocks := filled(t)
			damage(t, filepath.Join(dir, blocks[0]))
			s := open(t, options(dir))
			defer func() { assert.NoError(t, s.Close()) }()
			require.Len(t, s.Repairs, 1)
			assert.Equal(t, blocks[0], s.Repairs[0].What)
			assert.DirExists(t, strings.TrimPrefix(s.Repairs[0].How, "moved to "))
			assert.NotEmpty(t, s.Repairs[0].Why)
			assert.Len(t, s.Blocks(), len(blocks)-1)
			assert.Greater(t, samples(t, s), 60)
		})
	}
	overwrite := func(file string) func(*testing.T, string) {
		return func(t *testing.T, block string) {
			require.NoError(t, os.WriteFile(filepath.Join(block, file), []byte("rubbish"), 0o600))
		}
	}
	f("meta", overwrite("meta.json"))
	f("index", overwrite("index"))
	f("chunks", overwrite("chunks/000001"))
	f("no meta", func(t *testing.T, block string) { require.NoError(t, os.Remove(filepath.Join(block, "meta.json"))) })
	f("no index", func(t *testing.T, block string) { require.NoError(t, os.Remove(filepath.Join(block, "index"))) })
	f("torn index", func(t *testing.T, block string) { require.NoError(t, os.Truncate(filepath.Join(block, "index"), 100)) })
}

// Guarantees: a write-ahead log that ends in the middle of a record is cut there, and said so.
func TestATornLogIsCut(t *testing.T) {
	dir, _ := filled(t)
	segments, err := filepath.Glob(filepath.Join(dir, "wal", "0*"))
	require.NoError(t, err)
	last := segments[len(segments)-1]
	if info, err := os.Stat(last); err == nil && info.Size() == 0 {
		last = segments[len(segments)-2]
	}
	file, err := os.OpenFile(last, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	_, err = file.WriteString("\x03torn")
	require.NoError(t, err)
	require.NoError(t, file.Close())

	s := open(t, options(dir))
	defer func() { assert.NoError(t, s.Close()) }()
	require.Len(t, s.Repairs, 1)
	assert.Equal(t, "wal", s.Repairs[0].What)
	assert.Equal(t, 20*60, samples(t, s), "nothing before it is lost")
}

// Scenario: late samples come twice, each time a block is made of them, of the hours that are else only in the head, and the two are
// merged. Guarantees: the next start has what came in time in those hours, too.
func TestABlockOfLateSamplesHidesNothing(t *testing.T) {
	dir := t.TempDir()
	s := open(t, options(dir))
	put := func(name string, at time.Time) {
		app := s.Append(t.Context())
		_, err := app.Append(0, labels.FromStrings("__name__", name, "i", "3"), 0, at.UnixMilli(), 1, nil, nil, storage.AOptions{})
		require.NoError(t, err)
		require.NoError(t, app.Commit())
		require.Zero(t, app.Refused)
	}
	fill(t, s, end.Add(-5*time.Hour), end.Add(-time.Hour))
	n := samples(t, s)
	put("late", end.Add(-time.Hour))
	for round := range 2 {
		for i := range 20 {
			put("late", end.Add(-time.Hour-time.Duration(2*i+round+1)*time.Minute))
		}
		require.NoError(t, s.CompactOOOHead(t.Context()))
	}
	require.NoError(t, s.Compact(t.Context()))
	require.NoError(t, s.Close())

	s = open(t, options(dir))
	defer func() { assert.NoError(t, s.Close()) }()
	assert.Equal(t, n+41, samples(t, s))
}

// Guarantees: whatever bytes are damaged, wherever, the database opens, takes samples and is sound the next time.
func TestNoDamageKeepsItFromOpening(t *testing.T) {
	origin, _ := filled(t)
	var files []string
	require.NoError(t, filepath.WalkDir(origin, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && d.Name() != "lock" {
			if info, err := d.Info(); err == nil && info.Size() > 0 {
				rel, _ := filepath.Rel(origin, path)
				files = append(files, rel)
			}
		}
		return err
	}))
	require.Greater(t, len(files), 8)
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 40 {
		dir := filepath.Join(t.TempDir(), "db")
		require.NoError(t, os.CopyFS(dir, os.DirFS(origin)))
		file := filepath.Join(dir, files[round%len(files)])
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		switch round % 3 {
		case 0:
			data = data[:random.IntN(len(data))]
		case 1:
			for range 1 + len(data)/100 {
				data[random.IntN(len(data))] ^= byte(1 + random.IntN(255))
			}
		case 2:
			clear(data)
		}
		require.NoError(t, os.WriteFile(file, data, 0o600))

		s := open(t, options(dir))
		app := s.Append(t.Context())
		_, err = app.Append(0, labels.FromStrings("__name__", "after"), 0, time.Now().UnixMilli(), 1, nil, nil, storage.AOptions{})
		require.NoError(t, err)
		require.NoError(t, app.Commit())
		require.Zero(t, app.Refused)
		require.NoError(t, s.Close())
		s = open(t, options(dir))
		assert.Empty(t, s.Repairs, "damaged %s, as %d", file, round%3)
		require.NoError(t, s.Close())
	}
}

func TestWhatIsOlderThanTheRetentionGoes(t *testing.T) {
	opts := options(t.TempDir())
	opts.Retention = 8 * time.Hour
	s := open(t, opts)
	defer func() { assert.NoError(t, s.Close()) }()
	fill(t, s, end.Add(-20*time.Hour), end)
	n := samples(t, s)
	assert.GreaterOrEqual(t, n, 8*60)
	assert.LessOrEqual(t, n, 15*60, "a block goes when all of it is too old")
}

func TestADirectoryThatIsTooLargeLosesItsOldest(t *testing.T) {
	opts := options(t.TempDir())
	opts.MaxBytes = 1
	s := open(t, opts)
	defer func() { assert.NoError(t, s.Close()) }()
	fill(t, s, end.Add(-20*time.Hour), end)
	assert.Empty(t, s.Blocks())
	n := samples(t, s)
	assert.GreaterOrEqual(t, n, 60, "what is not yet in a block stays")
	assert.Less(t, n, 5*60)
	assert.Positive(t, s.Bytes())
}

// Guarantees: what is not a matter of damage is left alone and said.
func TestADirectoryThatCannotBeIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := Open(options(filepath.Join(file, "db")), promslog.NewNopLogger())
	require.ErrorContains(t, err, "directory "+filepath.Join(file, "db")+": ")
}

func TestOnlyBlocksAreTakenForBlocks(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"wal", "lost+found", ulid.Make().String()} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o750))
	}
	assert.Len(t, brokenBlocks(dir), 1)
}
