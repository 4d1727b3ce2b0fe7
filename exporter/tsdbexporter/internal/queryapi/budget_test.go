// SPDX-License-Identifier: Apache-2.0

package queryapi

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/exporter/tsdbexporter/internal/store"
)

// Scenario: a query may hold 1,000 samples, ten are answered at a time, and there are 300 series.
// Guarantees: a query that needs more than a tenth is answered, one at a time, until its answer has been written; others of as many wait,
// and are told so when their time is over; those of few do not wait; one of more than 1,000 is refused.
func TestQueriesShareTheSamplesThatTheyHold(t *testing.T) {
	s, err := store.Open(store.Options{Directory: t.TempDir(), Retention: 24 * time.Hour, MaxSeries: 1000}, promslog.NewNopLogger())
	require.NoError(t, err)
	defer func() { assert.NoError(t, s.Close()) }()
	now := time.Now()
	app := s.Append(t.Context())
	for i := range 300 {
		_, err := app.Append(0, labels.FromStrings("__name__", "g", "i", fmt.Sprint(i)), 0, now.UnixMilli(), 1, nil, nil, storage.AOptions{})
		require.NoError(t, err)
	}
	require.NoError(t, app.Commit())
	b := newBudget(Options{Store: s, Timeout: time.Minute, MaxSamples: 1000, MaxConcurrent: 10, Lookback: time.Minute, Logger: promslog.NewNopLogger()})
	ask := func(ctx context.Context, text string) (promql.Query, *promql.Result) {
		q, err := b.NewInstantQuery(ctx, s, nil, text, now)
		require.NoError(t, err)
		return q, q.Exec(ctx)
	}

	first, result := ask(t.Context(), "g")
	require.NoError(t, result.Err)
	assert.Len(t, result.Value, 300)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	second, result := ask(ctx, "g")
	var timeout promql.ErrQueryTimeout
	require.ErrorAs(t, result.Err, &timeout)
	assert.ErrorContains(t, result.Err, "another query of many samples is being answered")
	second.Close()
	small, result := ask(t.Context(), `g{i="7"}`)
	require.NoError(t, result.Err)
	small.Close()

	first.Close()
	third, result := ask(t.Context(), "g")
	require.NoError(t, result.Err)
	third.Close()
	large, result := ask(t.Context(), "g * on (i) g * on (i) g * on (i) g * on (i) g")
	var tooMany promql.ErrTooManySamples
	require.ErrorAs(t, result.Err, &tooMany)
	large.Close()
	last, result := ask(t.Context(), "g")
	require.NoError(t, result.Err, "one that is refused keeps no turn")
	last.Close()
}
