// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"sync/atomic"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunks"
)

var errSeriesLimit = errors.New("series limit reached")

// seriesLimit refuses new series when there are as many as may be. Those that there are go on.
type seriesLimit struct {
	most uint64
	head atomic.Pointer[tsdb.Head] // nil while the write-ahead log is read
}

// PreCreation is asked before a series is made. Appenders that run at the same time can exceed the limit by one each.
func (l *seriesLimit) PreCreation(labels.Labels) error {
	if h := l.head.Load(); h != nil && h.NumSeries() >= l.most {
		return errSeriesLimit
	}
	return nil
}

// PostCreation does nothing: the head counts.
func (*seriesLimit) PostCreation(labels.Labels) {}

// PostDeletion does nothing: the head counts.
func (*seriesLimit) PostDeletion(map[chunks.HeadSeriesRef]labels.Labels) {}
