// SPDX-License-Identifier: Apache-2.0

package queryapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
)

// budget is an engine that bounds the samples which all queries hold in memory together: Prometheus's has a limit for each, and eight
// that keep to it are more than a small machine has. Each gets a share, and those that need more get, one after the other, all that one
// query may have. So together they hold twice that at most.
type budget struct {
	share, all promql.QueryEngine
	turn       chan struct{} // of the query that has all
}

func newBudget(o Options) *budget {
	engine := func(name string, samples int) promql.QueryEngine {
		return promql.NewEngine(promql.EngineOpts{
			Logger: o.Logger, Reg: prometheus.WrapRegistererWith(prometheus.Labels{"engine": name}, o.Store.Registry),
			MaxSamples: samples, Timeout: o.Timeout, LookbackDelta: o.Lookback,
			// As in a Prometheus server with global.evaluation_interval left alone.
			NoStepSubqueryIntervalFn: func(int64) int64 { return time.Minute.Milliseconds() },
			EnableAtModifier:         true,
			EnableNegativeOffset:     true,
		})
	}
	return &budget{
		share: engine("share", max(1, o.MaxSamples/o.MaxConcurrent)),
		all:   engine("all", o.MaxSamples),
		turn:  make(chan struct{}, 1),
	}
}

// NewInstantQuery implements promql.QueryEngine.
func (b *budget) NewInstantQuery(ctx context.Context, q storage.Queryable, opts promql.QueryOpts, text string, at time.Time) (promql.Query, error) {
	return b.query(func(e promql.QueryEngine) (promql.Query, error) { return e.NewInstantQuery(ctx, q, opts, text, at) })
}

// NewRangeQuery implements promql.QueryEngine.
func (b *budget) NewRangeQuery(ctx context.Context, q storage.Queryable, opts promql.QueryOpts, text string, start, end time.Time, step time.Duration) (promql.Query, error) {
	return b.query(func(e promql.QueryEngine) (promql.Query, error) {
		return e.NewRangeQuery(ctx, q, opts, text, start, end, step)
	})
}

func (b *budget) query(ask func(promql.QueryEngine) (promql.Query, error)) (promql.Query, error) {
	first, err := ask(b.share)
	if err != nil {
		return nil, err
	}
	return &budgeted{Query: first, again: func() (promql.Query, error) { return ask(b.all) }, turn: b.turn}, nil
}

// budgeted is a query that is asked again when its share was too small.
type budgeted struct {
	promql.Query
	again   func() (promql.Query, error)
	turn    chan struct{}
	hasTurn bool
}

// Exec implements promql.Query.
func (q *budgeted) Exec(ctx context.Context) *promql.Result {
	result := q.Query.Exec(ctx)
	var tooMany promql.ErrTooManySamples
	if !errors.As(result.Err, &tooMany) {
		return result
	}
	select {
	case q.turn <- struct{}{}:
		q.hasTurn = true
	case <-ctx.Done():
		return &promql.Result{Err: fmt.Errorf("another query of many samples is being answered: %w", promql.ErrQueryTimeout("waiting for its turn"))}
	}
	whole, err := q.again()
	if err != nil {
		return &promql.Result{Err: err}
	}
	q.Query.Close()
	q.Query = whole
	return whole.Exec(ctx)
}

// Close implements promql.Query. It is called when the answer has been written, so the turn ends with the memory.
func (q *budgeted) Close() {
	q.Query.Close()
	if q.hasTurn {
		q.hasTurn = false
		<-q.turn
	}
}
