// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"fmt"

	"go.opentelemetry.io/collector/component"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/contexts/ottldatapoint"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/contexts/ottllog"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/contexts/ottlspan"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/ottlfuncs"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// transformContext is an item as OTTL sees it. They come from pools.
type transformContext interface{ Close() }

// expression is a condition that OTTL evaluates.
type expression[K transformContext] struct {
	text string
	cond *ottl.Condition[K]
}

// language compiles the expressions of one signal.
type language[K transformContext] struct {
	parser ottl.Parser[K]
	paths  paths
	// Many SLOs have an expression in common: it is compiled once.
	conditions map[string]*expression[K]
	measures   map[string]*measure[K]
}

func newLanguage[K transformContext](p ottl.Parser[K], paths paths) *language[K] {
	return &language[K]{p, paths, map[string]*expression[K]{}, map[string]*measure[K]{}}
}

func (l *language[K]) condition(text string) (*expression[K], error) {
	if c := l.conditions[text]; c != nil {
		return c, nil
	}
	cond, err := l.parser.ParseCondition(text)
	if err != nil {
		return nil, err
	}
	l.conditions[text] = &expression[K]{text, cond}
	return l.conditions[text], nil
}

// compile makes the program of a selector. Errors begin with the key of the expression.
func (l *language[K]) compile(s *openslo.Selector, role Role) (p program[K], errs []error) {
	var err error
	var all bool
	if p.on, all = l.paths.comparisons(s.Condition); !all {
		if p.rest, err = l.condition(s.Condition); err != nil {
			errs = append(errs, fmt.Errorf("condition: %w", err))
		}
	}
	if role == Expected {
		return p, errs
	}
	if s.Counted != "" {
		if p.counted, err = l.condition(s.Counted); err != nil {
			errs = append(errs, fmt.Errorf("counted: %w", err))
		}
	}
	if s.Value != "" && (role == Value || role == RawSuccess || role == RawFailure) {
		if p.value, err = l.measure(s.Value); err != nil {
			errs = append(errs, fmt.Errorf("value: %w", err))
		}
	}
	return p, errs
}

func pointParser(set component.TelemetrySettings) (ottl.Parser[*ottldatapoint.TransformContext], error) {
	return ottldatapoint.NewParser(ottlfuncs.StandardConverters[*ottldatapoint.TransformContext](), set, ottldatapoint.EnablePathContextNames())
}

func spanParser(set component.TelemetrySettings) (ottl.Parser[*ottlspan.TransformContext], error) {
	return ottlspan.NewParser(ottlfuncs.StandardConverters[*ottlspan.TransformContext](), set, ottlspan.EnablePathContextNames())
}

func logParser(set component.TelemetrySettings) (ottl.Parser[*ottllog.TransformContext], error) {
	return ottllog.NewParser(ottlfuncs.StandardConverters[*ottllog.TransformContext](), set, ottllog.EnablePathContextNames())
}
