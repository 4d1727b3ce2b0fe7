// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"log/slog"
	"math"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// compactor is the TSDB's, which forgets of blocks that it merges that all their samples came late. At its next start the TSDB then
// takes such a block for the end of what it has in blocks, and leaves out of its write-ahead log everything up to there: what came in
// time, and is in no block yet, would be lost. It happens when blocks are written faster than every two hours, as with a backlog
// that is drained.
type compactor struct{ *tsdb.LeveledCompactor }

func newCompactor(ctx context.Context, r prometheus.Registerer, l *slog.Logger, ranges []int64, pool chunkenc.Pool, opts *tsdb.Options) (tsdb.Compactor, error) {
	c, err := tsdb.NewLeveledCompactorWithOptions(ctx, r, l, ranges, pool, tsdb.LeveledCompactorOptions{
		MaxBlockChunkSegmentSize:    opts.MaxBlockChunkSegmentSize,
		EnableOverlappingCompaction: opts.EnableOverlappingCompaction,
	})
	return compactor{c}, err
}

// Write implements tsdb.Compactor.
func (c compactor) Write(dest string, b tsdb.BlockReader, oldest, end int64, base *tsdb.BlockMeta) ([]ulid.ULID, error) {
	if end == math.MinInt64 { // of Store.reload
		return nil, nil
	}
	return c.LeveledCompactor.Write(dest, b, oldest, end, base)
}

// Compact implements tsdb.Compactor.
func (c compactor) Compact(dest string, dirs []string, open []*tsdb.Block) ([]ulid.ULID, error) {
	return c.CompactWithBlockPopulator(dest, dirs, open, lateness{})
}

// lateness writes into the merged block that all of it came late, when it did.
type lateness struct{ tsdb.DefaultBlockPopulator }

// PopulateBlock implements tsdb.BlockPopulator.
func (p lateness) PopulateBlock(ctx context.Context, m *tsdb.CompactorMetrics, l *slog.Logger, pool chunkenc.Pool, merge storage.VerticalChunkSeriesMergeFunc,
	blocks []tsdb.BlockReader, meta *tsdb.BlockMeta, index tsdb.IndexWriter, chunks tsdb.ChunkWriter, postings tsdb.IndexReaderPostingsFunc,
) error {
	all := true
	for _, b := range blocks {
		from := b.Meta()
		all = all && from.Compaction.FromOutOfOrder()
	}
	if all {
		meta.Compaction.SetOutOfOrder()
	}
	return p.DefaultBlockPopulator.PopulateBlock(ctx, m, l, pool, merge, blocks, meta, index, chunks, postings)
}
