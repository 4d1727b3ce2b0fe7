// SPDX-License-Identifier: Apache-2.0

// Package store is Prometheus's TSDB as the exporter uses it: with limits for what data can fill, a disk that is not run
// full, and a start that no damaged file prevents.
package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/prometheus/prometheus/util/compression"
)

// Options of a store.
type Options struct {
	// Directory holds everything; it is made when it is missing. No other process may use it.
	Directory string
	// Retention is how long samples are kept.
	Retention time.Duration
	// MaxBytes is how large the directory may become before the oldest blocks are deleted; 0 has no limit.
	MaxBytes int64
	// MinFreeBytes is how much of the disk has to be free for samples to be taken; 0 is only what the database itself needs.
	MinFreeBytes int64
	// OutOfOrderWindow is how far a sample may lie behind the newest one.
	OutOfOrderWindow time.Duration
	// MaxSeries is how many series may be written to at a time.
	MaxSeries int
	// MaxExemplars is how many exemplars are kept, in memory.
	MaxExemplars int
}

// Store is an open database.
type Store struct {
	*tsdb.DB
	// Registry has the metrics that Prometheus's own packages have of themselves.
	Registry *prometheus.Registry
	// Families tells what the metrics are that were appended since the start.
	Families *Families
	// Repairs are what had to be done to the files for the database to open.
	Repairs []Repair

	opts      Options
	log       *slog.Logger
	upkeep    upkeep
	chunks    prometheus.Counter // that were made
	written   atomic.Int64       // of the chunks that were made, those that are not in memory alone
	unwritten unwritten
	lock      *tsdbutil.DirLocker
	order     sync.Mutex // held by the transaction that is open
	given     given      // to that transaction

	mu      sync.Mutex // guards what follows
	looked  time.Time  // when it was last looked how much of the disk is free
	free    uint64     // what was found
	unknown error      // or why that could not be found
	kept    int64      // what stands in unwritten
}

// Open opens the database, repairs it where that is needed, and reads its write-ahead log, which takes seconds for a
// million series. On a disk that is too full for that it says ErrNoRoom, and can be called again.
func Open(opts Options, logger *slog.Logger) (*Store, error) {
	s, err := openLocked(opts, logger)
	if errors.Is(err, syscall.ENOSPC) {
		err = fmt.Errorf("%w: %w", ErrNoRoom, err)
	}
	return s, explain(opts.Directory, err)
}

func openLocked(opts Options, logger *slog.Logger) (*Store, error) {
	if err := os.MkdirAll(opts.Directory, 0o750); err != nil {
		return nil, err
	}
	if logger == nil {
		logger = promslog.NewNopLogger()
	}
	limit := &seriesLimit{most: uint64(opts.MaxSeries)}
	s := &Store{opts: opts, log: logger, Families: newFamilies(opts.MaxSeries)}
	// Ours instead of the TSDB's: an open that fails does not release that one.
	var err error
	if s.lock, err = tsdbutil.NewDirLocker(opts.Directory, "tsdb", logger, nil); err != nil {
		return nil, err
	}
	if err := s.lock.Lock(); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	s.upkeep.stop = stop
	if err = s.open(ctx, limit); err != nil {
		stop()
		return nil, errors.Join(err, s.lock.Release())
	}
	// From now on: while the log is read, a refused series would count as damage, and the log would be cut there.
	limit.head.Store(s.Head())
	if s.metric("prometheus_tsdb_wal_corruptions_total") > 0 {
		s.Repairs = append(s.Repairs, Repair{
			What: "wal", How: "cut where it is damaged", Lost: "what was written after that; after a kill, at most what was just being written",
			Why: "a torn or corrupt record, of which the line before this one says more",
		})
	}
	s.startUpkeep(ctx)
	return s, nil
}

// open is what may find no room.
func (s *Store) open(ctx context.Context, limit *seriesLimit) error {
	dir := s.opts.Directory
	var err error
	if s.unwritten, err = openUnwritten(dir); err != nil {
		return err
	}
	if err := room(dir, s.unwritten.need(dir)+spare, "%d may be needed to read the write-ahead log"); err != nil {
		return errors.Join(err, s.unwritten.file.Close())
	}
	if err := s.unwritten.set(unknown); err != nil {
		return errors.Join(err, s.unwritten.file.Close())
	}
	err = repairing(dir, func() (err error) {
		defer func() { recovered(recover(), &err) }() // what cannot be opened is closed, which writes chunks
		// Anew each time: an open that fails leaves its metrics behind.
		r := &registry{Registry: prometheus.NewRegistry()}
		o := tsdbOptions(s.opts, limit)
		o.NewCompactorFunc = func(_ context.Context, r prometheus.Registerer, l *slog.Logger, ranges []int64, pool chunkenc.Pool, o *tsdb.Options) (tsdb.Compactor, error) {
			return newCompactor(ctx, r, l, ranges, pool, o)
		}
		s.DB, err = tsdb.Open(dir, s.log, r, o, nil)
		s.Registry, s.chunks = r.Registry, r.chunks
		return err
	}, &s.Repairs)
	if err != nil {
		return errors.Join(err, s.unwritten.file.Close())
	}
	return s.unwritten.set(0)
}

// tsdbOptions are those of a Prometheus server, but for what Options says.
func tsdbOptions(opts Options, limit tsdb.SeriesLifecycleCallback) *tsdb.Options {
	o := tsdb.DefaultOptions()
	o.RetentionDuration = opts.Retention.Milliseconds()
	o.MaxBytes = opts.MaxBytes
	o.OutOfOrderTimeWindow = opts.OutOfOrderWindow.Milliseconds()
	o.EnableExemplarStorage = opts.MaxExemplars > 0
	o.MaxExemplars = int64(opts.MaxExemplars)
	o.SeriesLifecycleCallback = limit
	o.WALCompression = compression.Snappy
	o.NoLockfile = true
	o.HeadChunksWriteQueueSize = 0
	o.BlockReloadInterval = math.MaxInt64 // see upkeep
	// 64 KiB instead of 4 MiB, all of which would be in memory twice until it is full, minutes later: resident memory would rise and
	// fall with it. A chunk has 150 bytes, and 100,000 series make 55 of them in a second.
	o.HeadChunksWriteBufferSize = chunks.MinWriteBufferSize
	// As Prometheus chooses it: a tenth of the retention, at most a month.
	o.MaxBlockDuration = max(min(opts.Retention/10, 31*24*time.Hour).Milliseconds(), o.MinBlockDuration)
	return o
}

// Close ends compactions and closes the files. What was appended is in the write-ahead log.
func (s *Store) Close() error {
	s.stopUpkeep()
	err := s.closeDB()
	switch {
	case err == nil:
		err = s.unwritten.set(0)
	case errors.Is(err, syscall.ENOSPC):
		s.log.Warn("chunks are not written, the write-ahead log has them", "err", err)
		err = nil
	}
	return errors.Join(err, s.unwritten.file.Close(), s.lock.Release())
}

// closeDB makes an error of the panic of a TSDB that cannot write the chunks it has in memory: the log has what is in them, and what
// else the Collector has to end should end.
func (s *Store) closeDB() (err error) {
	defer func() { recovered(recover(), &err) }()
	return s.DB.Close()
}

// recovered makes an error of a panic.
func recovered(p any, err *error) {
	switch p := p.(type) {
	case nil:
	case error:
		*err = fmt.Errorf("panic: %w", p)
	default:
		*err = fmt.Errorf("panic: %v", p)
	}
}

// Bytes is the size of what is on disk: blocks, write-ahead log and the chunks of the head.
func (s *Store) Bytes() int64 {
	size := s.Head().Size()
	for _, b := range s.Blocks() {
		size += b.Size()
	}
	return size
}

// Gathered are the metrics of the Registry that are one number, or one for each value of a label, which are added up.
func (s *Store) Gathered() map[string]float64 {
	families, err := s.Registry.Gather()
	if err != nil {
		return nil
	}
	values := make(map[string]float64, len(families))
	for _, family := range families {
		for _, m := range family.GetMetric() {
			values[family.GetName()] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return values
}

func (s *Store) metric(name string) float64 { return s.Gathered()[name] }

// Querier, ChunkQuerier and ExemplarQuerier are the DB's.
var (
	_ storage.SampleAndChunkQueryable = (*Store)(nil)
	_ storage.ExemplarQueryable       = (*Store)(nil)
)
