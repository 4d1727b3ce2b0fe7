// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// disk makes the disk have so many bytes free until the test ends.
func disk(t *testing.T, bytes *uint64) {
	t.Cleanup(func() { free = freeBytes })
	free = func(string) (uint64, error) { return *bytes, nil }
}

// written is how many chunks have been written, and were in memory alone before.
func written(s *Store) float64 { return s.metric("prometheus_tsdb_mmap_chunks_total") }

// quiet is a store that a test keeps up itself.
func quiet(t *testing.T, opts Options) *Store {
	t.Helper()
	defer func(was time.Duration) { upkeepTick = was }(upkeepTick)
	upkeepTick = 24 * time.Hour
	return open(t, opts)
}

// Scenario: the disk is full while there are chunks to write, when they are due; then there is room.
// Guarantees: they are not written, nothing is taken, and what is there can be read; then they are, all, and it goes on.
func TestChunksWaitForRoom(t *testing.T) {
	s := quiet(t, options(t.TempDir()))
	defer func() { assert.NoError(t, s.Close()) }()
	fill(t, s, end.Add(-140*time.Minute), end)
	n, pending := samples(t, s), uint64(s.pending())
	require.Positive(t, pending)
	have := uint64(0)
	disk(t, &have)
	now := time.Now()

	s.turn(t.Context(), now)
	assert.Zero(t, written(s))
	require.ErrorIs(t, s.Room(now), ErrNoRoom)
	assert.Equal(t, n, samples(t, s))
	have = pending + spare - 1
	s.turn(t.Context(), now.Add(time.Second))
	assert.Zero(t, written(s), "one byte is missing")

	have++
	require.ErrorContains(t, s.Room(now.Add(time.Second)), "may be needed to write what is in memory", "and what comes would not find room")
	s.turn(t.Context(), now.Add(2*time.Second))
	assert.Positive(t, written(s), "before it is due, since room is scarce")
	assert.LessOrEqual(t, written(s)*chunkBytes, float64(pending))
	assert.Zero(t, s.pending())
	have = 10*chunkBytes + spare
	require.NoError(t, s.Room(now.Add(2*time.Second)))
	assert.Equal(t, n, samples(t, s))
}

// Guarantees: what min_free_bytes keeps is kept, too.
func TestMinFreeBytesAreKept(t *testing.T) {
	opts := options(t.TempDir())
	opts.MinFreeBytes = 10 << 20
	s := quiet(t, opts)
	defer func() { assert.NoError(t, s.Close()) }()
	have := uint64(10<<20 - 1)
	disk(t, &have)
	now := time.Now()
	require.ErrorContains(t, s.Room(now), "10485759 bytes of the disk of "+opts.Directory+" are free, and min_free_bytes is 10485760")
	have++
	require.ErrorIs(t, s.Room(now.Add(99*time.Millisecond)), ErrNoRoom, "it looks ten times a second")
	require.NoError(t, s.Room(now.Add(100*time.Millisecond)))
}

// Scenario: blocks would be made on a full disk, of late samples, too, whose chunks the TSDB writes first.
// Guarantees: none is, and the head is what it was; with room, they are.
func TestBlocksWaitForRoom(t *testing.T) {
	s := quiet(t, options(t.TempDir()))
	defer func() { assert.NoError(t, s.Close()) }()
	fill(t, s, end.Add(-2*time.Hour), end)
	put := func(at time.Time) {
		app := s.Append(t.Context())
		_, err := app.Append(0, labels.FromStrings("__name__", "m", "i", "3"), 0, at.UnixMilli(), 1, nil, nil, storage.AOptions{})
		require.NoError(t, err)
		require.NoError(t, app.Commit())
		require.Zero(t, app.Refused)
	}
	put(end.Add(-30 * time.Minute).Add(time.Second))
	put(end.Add(2 * time.Hour))
	n := samples(t, s)
	have := uint64(spare)
	disk(t, &have)
	now := time.Now()
	s.ForceHeadMMap()
	s.written.Store(s.made())

	s.turn(t.Context(), now)
	assert.Empty(t, s.Blocks())
	assert.Equal(t, n, samples(t, s))
	have = math.MaxInt64
	s.turn(t.Context(), now.Add(time.Second))
	assert.Len(t, s.Blocks(), 1, "of what came in time, and of what came late")
	assert.Equal(t, n, samples(t, s))
}

// Guarantees: blocks that are beyond the retention are deleted while nothing comes, even on a full disk, which is when it matters most.
func TestBlocksThatAreTooManyGoOnAFullDisk(t *testing.T) {
	dir, blocks := filled(t)
	opts := options(dir)
	s := quiet(t, opts)
	defer func() { assert.NoError(t, s.Close()) }()
	require.Len(t, s.Blocks(), len(blocks))
	have := uint64(0)
	disk(t, &have)
	require.NoError(t, s.reload())
	assert.Len(t, s.Blocks(), len(blocks))
	oldest, newest := s.Head().MinTime(), s.Head().MaxTime()
	logs, err := filepath.Glob(filepath.Join(dir, "wal", "*"))
	require.NoError(t, err)

	var cfg config.Config
	cfg.StorageConfig.ExemplarsConfig = &config.DefaultExemplarsConfig
	cfg.StorageConfig.TSDBConfig = &config.TSDBConfig{Retention: &config.TSDBRetentionConfig{Size: 1}}
	require.NoError(t, s.ApplyConfig(&cfg))
	s.turn(t.Context(), time.Now())
	assert.Empty(t, s.Blocks())
	assert.Equal(t, []int64{oldest, newest}, []int64{s.Head().MinTime(), s.Head().MaxTime()}, "the head is as it was")
	after, err := filepath.Glob(filepath.Join(dir, "wal", "*"))
	require.NoError(t, err)
	assert.Equal(t, logs, after, "and so is its log")
}

// killed is a copy of a directory as a kill would leave it.
func killed(t *testing.T, dir string) string {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "killed")
	require.NoError(t, os.CopyFS(copied, os.DirFS(dir)))
	return copied
}

// Scenario: chunks are in the log alone when the process is killed; it has to be read on a disk that has too little room for them, by a
// byte, and then enough. Guarantees: the database is not opened, and nothing of it is moved or lost; then it is, with all that was taken.
func TestALogIsReadWhenThereIsRoom(t *testing.T) {
	s := quiet(t, options(t.TempDir()))
	fill(t, s, end.Add(-140*time.Minute), end)
	n := samples(t, s)
	have := uint64(0)
	disk(t, &have)
	s.turn(t.Context(), time.Now())
	need := uint64(s.pending() + spare)
	dir := killed(t, s.opts.Directory)
	require.NoError(t, s.Close())

	have = need - 1
	for range 2 { // what was known is known the next time
		_, err := Open(options(dir), promslog.NewNopLogger())
		require.ErrorIs(t, err, ErrNoRoom)
		require.ErrorContains(t, err, fmt.Sprintf("%d may be needed to read the write-ahead log", need))
	}
	assert.NoDirExists(t, filepath.Join(dir, damagedFolder))
	have = need
	s = open(t, options(dir))
	assert.Equal(t, n, samples(t, s))
	assert.Empty(t, s.Repairs)
	require.NoError(t, s.Close())
	have = spare
	require.NoError(t, open(t, options(dir)).Close(), "all has been written")
}

// Scenario: a process dies while it reads the log. Guarantees: the next asks for room for all that the log can become.
func TestAfterADeathThereHasToBeRoomForAll(t *testing.T) {
	s := quiet(t, options(t.TempDir()))
	fill(t, s, end.Add(-140*time.Minute), end)
	n := samples(t, s)
	require.NoError(t, s.unwritten.set(unknown))
	dir := killed(t, s.opts.Directory)
	require.NoError(t, s.Close())

	need := uint64(2*size(filepath.Join(dir, "wal"))) + spare
	require.Greater(t, need, uint64(spare+10_000))
	have := need - 1
	disk(t, &have)
	_, err := Open(options(dir), promslog.NewNopLogger())
	require.ErrorIs(t, err, ErrNoRoom)
	have = need
	s = open(t, options(dir))
	assert.Equal(t, n, samples(t, s))
	require.NoError(t, s.Close())
}
