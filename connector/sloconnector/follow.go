// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/internal/intake"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// compile makes what finds the data of a catalog, once it is clear that its results can be told apart. An error changes
// nothing. The caller holds the mutex.
func (e *engine) compile(slos *openslo.Catalog) error {
	var errs []error
	for i := range slos.SLOs {
		slo := &slos.SLOs[i]
		for _, key := range slo.GroupBy {
			if problem := openslo.CheckGroupBy(e.cfg.GroupBy, key); problem != "" && !slices.Contains(e.cfg.GroupBy, key) {
				errs = append(errs, fmt.Errorf("group_by: slo %q (%s:%d) is judged apart for other keys, too: %s", slo.Name, slo.Position.File, slo.Position.Line, problem))
			}
		}
	}
	selectors, err := intake.Compile(slos, e.set)
	if err := errors.Join(append(errs, err)...); err != nil {
		return err
	}
	e.selectors = selectors
	return nil
}

// follow takes over what the catalog holds since it was last asked. A catalog that cannot be compiled changes nothing.
func (e *engine) follow() {
	slos := e.source.Catalog()
	if slos == e.slos {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.slos = slos
	if err := e.compile(slos); err != nil {
		e.set.Logger.Error("the new SLO catalog is not used; judging goes on by the one before", zap.Error(err))
		return
	}
	e.judge.Update(slos)
	e.intake.Select(e.selectors)
	e.announce()
}

// announce makes what is promised visible from the start, and says what is not measured.
func (e *engine) announce() {
	e.lookAt = e.now().Add(unseenAfter)
	for i := range e.slos.SLOs {
		slo := &e.slos.SLOs[i]
		switch {
		case !slo.Evaluated():
			e.set.Logger.Info("an SLO is not measured here", zap.String("slo_id", slo.ID), zap.String("because", slo.NotEvaluated()))
		case len(e.judge.GroupBy(i)) == 0:
			e.judge.Series(i, nil) // a promise without data is shown as such
		}
	}
}

// warnOnce says something about an SLO once.
func (e *engine) warnOnce(what string, slo *openslo.SLO, fields ...zap.Field) {
	key := what + slo.ID
	if e.warned[key] {
		return
	}
	e.warned[key] = true
	e.set.Logger.Warn(what, append([]zap.Field{zap.String("slo_id", slo.ID)}, fields...)...)
}
