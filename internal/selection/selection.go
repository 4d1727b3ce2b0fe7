// SPDX-License-Identifier: Apache-2.0

// Package selection finds the data points, spans and log records that the SLOs of a catalog are made of. It is the one
// way in which components match data with promises.
//
// What is compiled of a catalog is safe for concurrent use. Deciding on an item costs the same whatever the number of SLOs
// whose conditions compare attributes with texts (model_name == "qwen2-72b"): those are looked up, and only what is left is
// evaluated one after another.
package selection

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// Role says which part of an indicator an item is.
type Role int

// The roles. A threshold indicator has values, and may have a metric that says how many there should be; a ratio has two of
// good, bad and total, or is raw.
const (
	Value Role = iota
	Good
	Bad
	Total
	RawSuccess
	RawFailure
	Expected
)

// Use is one way in which a metric, or spans or log records, serve an SLO.
type Use struct {
	Index   int // in Uses of the signal
	SLO     int // in Catalog.SLOs
	Role    Role
	Counter bool           // the spec says that the source only grows, whatever its type says
	Range   *openslo.Range // of plausible values in the base unit; nil allows all
	Rate    time.Duration  // interval that is one event; 0 for events of their own
	metric  string
	unit    string  // base unit of the SLO
	scale   float64 // by the spec
}

// Scale is what a value of a metric of this name and unit is multiplied by to give the SLO's base unit. The unit that the
// data carries is believed first, then the one that its name ends in, then that of the spec: the producer knows what it
// measured. Units of something else than the SLO's are not believed.
func (u *Use) Scale(name, unit string) float64 {
	if base, scale, ok := openslo.BaseUnit(unit); ok && base == u.unit {
		return scale
	}
	if base, scale, ok := openslo.UnitOfSuffix(name); ok && base == u.unit {
		return scale
	}
	return u.scale
}

// BelowZero reports whether a value in the base unit is less than nothing of what cannot be: no duration, size or rate is, unless
// the spec's range has it, as of a clock that is ahead.
func (u *Use) BelowZero(v float64) bool {
	return v < 0 && u.Range == nil && (u.unit == "seconds" || u.unit == "bytes" || u.unit == "tokens" || strings.HasSuffix(u.unit, "_per_second"))
}

// Error is an expression of a use that could not be evaluated on an item.
type Error struct {
	Use int    // Use.Index; the first of those that share the expression
	Key string // condition, value or counted
	Err error
}

func (e *Error) Error() string { return e.Key + ": " + e.Err.Error() }

// Unwrap is what OTTL says.
func (e *Error) Unwrap() error { return e.Err }

// program is what decides on the items of a use.
type program[K transformContext] struct {
	on      []comparison   // what an item is looked up by
	rest    *expression[K] // nil when on is all of the condition
	value   *measure[K]    // nil where each item counts one
	counted *expression[K] // nil counts all
}

// compiled is what is made of the selectors of one signal.
type compiled[K transformContext] struct {
	uses     []Use
	programs []program[K] // by Use.Index
}

// compile makes the uses of all SLOs that are measured here. It reports all expressions that do not parse, each with the
// place of its SLO.
func compile[K transformContext](catalog *openslo.Catalog, signal openslo.Signal, l *language[K]) (*compiled[K], error) {
	c := &compiled[K]{}
	var errs []error
	for i := range catalog.SLOs {
		slo := &catalog.SLOs[i]
		if !slo.Evaluated() {
			continue
		}
		for _, part := range parts(&slo.Indicator) {
			s := part.selector
			if s == nil || s.Signal != signal {
				continue
			}
			p, err := l.compile(s, part.role)
			for _, err := range err {
				errs = append(errs, fmt.Errorf("%s:%d: slo %q: %s%w", slo.Position.File, slo.Position.Line, slo.Name, part.path, err))
			}
			use := Use{
				Index: len(c.uses), SLO: i, Role: part.role, Range: s.Range, Rate: s.Rate, metric: s.Metric, unit: slo.Unit, scale: s.Scale,
				Counter: part.role == Expected || slo.Indicator.Ratio != nil && slo.Indicator.Ratio.Counter,
			}
			if part.role == Expected {
				use.Range, use.Rate, use.metric, use.unit, use.scale = nil, 0, s.Expected, "", 1
			}
			c.uses = append(c.uses, use)
			c.programs = append(c.programs, p)
		}
	}
	return c, errors.Join(errs...)
}

// part is a selector of an indicator.
type part struct {
	role     Role
	path     string // before the key of an expression; empty where there is one selector only
	selector *openslo.Selector
}

func parts(in *openslo.Indicator) []part {
	switch {
	case in.Ratio != nil && in.Ratio.RawType == openslo.RawFailure:
		return []part{{RawFailure, "", in.Ratio.Raw}, {Good, "good.", in.Ratio.Good}, {Bad, "bad.", in.Ratio.Bad}, {Total, "total.", in.Ratio.Total}}
	case in.Ratio != nil:
		return []part{{RawSuccess, "", in.Ratio.Raw}, {Good, "good.", in.Ratio.Good}, {Bad, "bad.", in.Ratio.Bad}, {Total, "total.", in.Ratio.Total}}
	case in.Threshold != nil && in.Threshold.Expected != "":
		return []part{{Value, "", in.Threshold}, {Expected, "", in.Threshold}}
	default: // nothing is selected for a composite: its parts are SLOs of their own
		return []part{{Value, "", in.Threshold}}
	}
}
