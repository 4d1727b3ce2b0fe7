// SPDX-License-Identifier: Apache-2.0

// Package store is Prometheus's TSDB as the exporter uses it: with limits for what data can fill, a disk that is not run
// full, and a start that no damaged file prevents.
package store

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
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
	// MinFreeBytes is how much of the disk has to be free for samples to be taken; 0 does not look.
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

	opts  Options
	lock  *tsdbutil.DirLocker
	order sync.Mutex // held by the transaction that is open
	given given      // to that transaction

	mu      sync.Mutex // guards what follows
	checked time.Time  // when the disk was last looked at
	full    error      // what was found
}

// Open opens the database, repairs it where that is needed, and reads its write-ahead log, which takes seconds for a
// million series.
func Open(opts Options, logger *slog.Logger) (*Store, error) {
	s, err := openLocked(opts, logger)
	return s, explain(opts.Directory, err)
}

func openLocked(opts Options, logger *slog.Logger) (*Store, error) {
	if err := os.MkdirAll(opts.Directory, 0o750); err != nil {
		return nil, err
	}
	limit := &seriesLimit{most: uint64(opts.MaxSeries)}
	s := &Store{opts: opts, Families: newFamilies(opts.MaxSeries)}
	// Ours instead of the TSDB's: an open that fails does not release that one.
	var err error
	if s.lock, err = tsdbutil.NewDirLocker(opts.Directory, "tsdb", logger, nil); err != nil {
		return nil, err
	}
	if err := s.lock.Lock(); err != nil {
		return nil, err
	}
	err = repairing(opts.Directory, func() error {
		// Anew each time: an open that fails leaves its metrics behind.
		s.Registry = prometheus.NewRegistry()
		s.DB, err = tsdb.Open(opts.Directory, logger, s.Registry, tsdbOptions(opts, limit), nil)
		return err
	}, &s.Repairs)
	if err != nil {
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
	return s, nil
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
	o.NewCompactorFunc = newCompactor
	o.WALCompression = compression.Snappy
	o.NoLockfile = true
	o.HeadChunksWriteQueueSize = 0
	// 64 KiB instead of 4 MiB, all of which would be in memory twice until it is full, minutes later: resident memory would rise and
	// fall with it. A chunk has 150 bytes, and 100,000 series make 55 of them in a second.
	o.HeadChunksWriteBufferSize = chunks.MinWriteBufferSize
	// As Prometheus chooses it: a tenth of the retention, at most a month.
	o.MaxBlockDuration = max(min(opts.Retention/10, 31*24*time.Hour).Milliseconds(), o.MinBlockDuration)
	return o
}

// Room says by an error that the disk is so full that nothing may be written. It looks ten times a second, in which not more than
// some MiB are written.
//
// It stands before every write because the TSDB panics when it cannot write a chunk, which would end the Collector.
func (s *Store) Room(now time.Time) error {
	const every = 100 * time.Millisecond
	if s.opts.MinFreeBytes <= 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if since := now.Sub(s.checked); since >= 0 && since < every {
		return s.full
	}
	s.checked, s.full = now, nil
	free, err := freeBytes(s.opts.Directory)
	switch {
	case err != nil:
		s.full = fmt.Errorf("look how much of the disk is free: %w", err)
	case free < uint64(s.opts.MinFreeBytes):
		s.full = fmt.Errorf("directory %s: %d bytes of the disk are free, and min_free_bytes is %d", s.opts.Directory, free, s.opts.MinFreeBytes)
	}
	return s.full
}

// Close ends compactions and closes the files. What was appended is in the write-ahead log.
func (s *Store) Close() error { return errors.Join(s.closeDB(), s.lock.Release()) }

// closeDB makes an error of the panic of a TSDB that cannot write the chunks it has in memory: the log has what is in them, and what
// else the Collector has to end should end.
func (s *Store) closeDB() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("directory %s: chunks are not written, the write-ahead log has them: %v", s.opts.Directory, p)
		}
	}()
	return s.DB.Close()
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
