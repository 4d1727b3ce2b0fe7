// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unicode/utf8"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunks"
)

var errSeriesLimit = errors.New("series limit reached")

// seriesLimit refuses new series when there are as many as may be, or when what they are called could not be told: protobuf lets text
// through that is no UTF-8, and JSON has none. Those that there are go on.
type seriesLimit struct {
	most uint64
	head atomic.Pointer[tsdb.Head] // nil while the write-ahead log is read
}

// PreCreation is asked before a series is made. Appenders that run at the same time can exceed the limit by one each.
func (l *seriesLimit) PreCreation(ls labels.Labels) error {
	h := l.head.Load()
	if h == nil {
		return nil
	}
	if h.NumSeries() >= l.most {
		return errSeriesLimit
	}
	return tellable(ls)
}

// tellable says whether labels are text.
func tellable(ls labels.Labels) error {
	return ls.Validate(func(label labels.Label) error {
		if !utf8.ValidString(label.Name) || !utf8.ValidString(label.Value) {
			return fmt.Errorf("label %q: %q is not UTF-8", label.Name, label.Value)
		}
		return nil
	})
}

// PostCreation does nothing: the head counts.
func (*seriesLimit) PostCreation(labels.Labels) {}

// PostDeletion does nothing: the head counts.
func (*seriesLimit) PostDeletion(map[chunks.HeadSeriesRef]labels.Labels) {}
