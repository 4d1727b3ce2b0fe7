// SPDX-License-Identifier: Apache-2.0

package tsdbexporter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/storage/remote/otlptranslator/prometheusremotewrite"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/exporter/tsdbexporter/internal/store"
)

// push takes what it can of a batch. What is refused for what it is, is counted, and is no error: it would be refused again.
// An error is for a database that can take nothing now; the sender may try again with the same batch.
func (e *tsdbExporter) push(ctx context.Context, md pmetric.Metrics) error {
	err := e.room(time.Now())
	e.reportRoom(err)
	if err != nil {
		return err
	}
	parts := split{span: newSpan(e.store.Load().Takes(time.Now()))}
	if !parts.takesAll(md) {
		// Before deltas are added up, which the last of a time far ahead would end, and before the translator, which fills the time
		// from the first point to the last with target_info.
		md = parts.copyOf(md)
	}
	if haveDelta(md) {
		err = e.deltas.consume(ctx, md)
	} else {
		err = e.write(ctx, md)
	}
	if err == nil {
		e.report(ctx, &parts.Refusals, nil)
	}
	return err
}

// report counts and logs what was refused, and what could not be read.
func (e *tsdbExporter) report(ctx context.Context, refused *store.Refusals, unread error) {
	unreadable := failures(unread)
	e.telemetry.appended(ctx, refused, unreadable)
	e.warn(refused, unread, unreadable)
}

// room says by an error that nothing can be written now: there is no database yet, or the disk is too full.
func (e *tsdbExporter) room(now time.Time) error {
	s := e.store.Load()
	if s == nil {
		return errNotOpen
	}
	return s.Room(now)
}

// reportRoom tells the Collector's status when the disk becomes full, and when it is no more.
func (e *tsdbExporter) reportRoom(err error) {
	e.mu.Lock()
	changed := e.full != (err != nil)
	e.full = err != nil
	e.mu.Unlock()
	switch {
	case !changed:
	case err != nil:
		componentstatus.ReportStatus(e.host, componentstatus.NewRecoverableErrorEvent(err))
	default:
		componentstatus.ReportStatus(e.host, componentstatus.NewEvent(componentstatus.StatusOK))
	}
}

// write appends a batch in one transaction.
func (e *tsdbExporter) write(ctx context.Context, md pmetric.Metrics) error {
	app, err := e.translate(ctx, md)
	if err != nil && ctx.Err() == nil {
		// The translator gives up a metric at the first point that it cannot read. With a metric for each point, only such
		// points are lost.
		if rollback := app.Rollback(); rollback != nil {
			return rollback
		}
		each := (&split{span: everything}).copyOf(md)
		app, err = e.translate(ctx, each)
		if errors.Is(err, errPanicked) && ctx.Err() == nil {
			if rollback := app.Rollback(); rollback != nil {
				return rollback
			}
			app, err = e.translateEach(ctx, each)
		}
	}
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), app.Rollback())
	}
	if err := app.Commit(); err != nil {
		return err
	}
	e.report(ctx, &app.Refusals, err)
	return nil
}

// errPanicked is for what the translator panics at, such as a label of 16 MiB: it must not keep the transaction, for which all wait.
var errPanicked = errors.New("cannot be written")

// translate appends a batch, and returns what of it could not be read.
func (e *tsdbExporter) translate(ctx context.Context, md pmetric.Metrics) (*store.Appender, error) {
	app := e.store.Load().Append(ctx)
	return app, e.translateTo(ctx, app, md)
}

func (e *tsdbExporter) translateTo(ctx context.Context, app *store.Appender, md pmetric.Metrics) (err error) {
	defer func() {
		if why := recover(); why != nil {
			err = fmt.Errorf("%w: %v", errPanicked, why)
		}
	}()
	_, err = prometheusremotewrite.NewPrometheusConverter(app).FromMetrics(ctx, md, e.settings())
	return err
}

// translateEach appends a batch metric by metric, so that one at which the translator panics takes no other along.
func (e *tsdbExporter) translateEach(ctx context.Context, md pmetric.Metrics) (*store.Appender, error) {
	app := e.store.Load().Append(ctx)
	var errs []error
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				one := pmetric.NewMetrics()
				r := one.ResourceMetrics().AppendEmpty()
				rm.Resource().CopyTo(r.Resource())
				scope := r.ScopeMetrics().AppendEmpty()
				sm.Scope().CopyTo(scope.Scope())
				m.MoveTo(scope.Metrics().AppendEmpty())
				errs = append(errs, e.translateTo(ctx, app, one))
			}
		}
	}
	return app, errors.Join(errs...)
}

// settings of the translator are those that a Prometheus server has by default, but for what is promoted.
func (e *tsdbExporter) settings() prometheusremotewrite.Settings {
	return prometheusremotewrite.Settings{
		AddMetricSuffixes: true,
		PromoteResourceAttributes: prometheusremotewrite.NewPromoteResourceAttributes(config.OTLPConfig{
			PromoteResourceAttributes: e.cfg.PromoteResourceAttributes,
		}),
		LookbackDelta:                        e.cfg.Query.Lookback,
		LabelNameUnderscoreSanitization:      config.DefaultOTLPConfig.LabelNameUnderscoreSanitization,
		LabelNamePreserveMultipleUnderscores: config.DefaultOTLPConfig.LabelNamePreserveMultipleUnderscores,
	}
}

// failures is how many errors were joined.
func failures(err error) (n int64) {
	if err == nil {
		return 0
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return 1
	}
	for _, err := range joined.Unwrap() {
		n += failures(err)
	}
	return n
}

// warn logs what was refused, at most once a minute: the counters have all of it.
func (e *tsdbExporter) warn(all *store.Refusals, unread error, unreadable int64) {
	var refused []zap.Field
	for i, n := range all.Refused {
		if n > 0 {
			refused = append(refused, zap.Int64(store.ReasonNames[i], n))
		}
	}
	if len(refused) == 0 && unread == nil {
		return
	}
	const every = time.Minute
	now := time.Now()
	e.mu.Lock()
	due := now.Sub(e.warned) >= every
	if due {
		e.warned = now
	}
	e.mu.Unlock()
	if !due {
		return
	}
	if len(refused) > 0 {
		e.log.Warn("samples are refused; otelcol_tsdb_samples_refused counts them", append(refused,
			zap.String("example", all.Example.Series), zap.Time("time", all.Example.Time), zap.Error(all.Example.Err))...)
	}
	if unread != nil {
		e.log.Warn("data points cannot be translated; otelcol_tsdb_points_unreadable counts them", zap.Int64("points", unreadable), zap.Error(first(unread)))
	}
}

// first is the first of joined errors.
func first(err error) error {
	for {
		joined, ok := err.(interface{ Unwrap() []error })
		if !ok || len(joined.Unwrap()) == 0 {
			return err
		}
		err = joined.Unwrap()[0]
	}
}
