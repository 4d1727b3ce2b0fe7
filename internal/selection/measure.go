// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl"
)

// measure is a value expression. One that is nothing but an attribute is looked up, without OTTL.
type measure[K transformContext] struct {
	attribute attribute
	plain     bool
	value     *ottl.ValueExpression[K]
}

func (l *language[K]) measure(text string) (*measure[K], error) {
	if m := l.measures[text]; m != nil {
		return m, nil
	}
	m := &measure[K]{}
	if m.attribute, m.plain = l.paths.attribute(text); !m.plain {
		value, err := l.parser.ParseValueExpression(text)
		if err != nil {
			return nil, err
		}
		m.value = value
	}
	l.measures[text] = m
	return m, nil
}

// reading is what a measure says of an item.
type reading struct {
	number   float64
	has      bool // false for nil, e.g. an attribute that is not there
	duration bool // number is in seconds, whatever the spec says
	err      error
}

// in is the number in the base unit of a use.
func (r *reading) in(u *Use) float64 {
	if r.duration && u.unit == "seconds" {
		return r.number
	}
	return r.number * u.scale
}

func (m *measure[K]) read(w *walk[K], open func() K) reading {
	if m.plain {
		v, ok := w.at.get(&m.attribute)
		if !ok {
			return reading{}
		}
		return ofValue(v)
	}
	v, err := m.value.Eval(w.ctx, w.context(open))
	if err != nil {
		return reading{err: err}
	}
	return ofAny(v)
}

func number(v float64) reading { return reading{number: v, has: true} }

// ofValue reads an attribute.
func ofValue(v pcommon.Value) reading {
	switch v.Type() {
	case pcommon.ValueTypeEmpty:
		return reading{}
	case pcommon.ValueTypeDouble:
		return number(v.Double())
	case pcommon.ValueTypeInt:
		return number(float64(v.Int()))
	case pcommon.ValueTypeBool:
		return ofBool(v.Bool())
	case pcommon.ValueTypeStr:
		return ofText(v.Str())
	default:
		return reading{err: fmt.Errorf("a %s is no number", strings.ToLower(v.Type().String()))}
	}
}

// ofAny reads what OTTL gives.
func ofAny(v any) reading {
	switch v := v.(type) {
	case nil:
		return reading{}
	case float64:
		return number(v)
	case int64:
		return number(float64(v))
	case int:
		return number(float64(v))
	case bool:
		return ofBool(v)
	case string:
		return ofText(v)
	case time.Duration:
		return reading{number: v.Seconds(), has: true, duration: true}
	case pcommon.Value:
		return ofValue(v)
	default:
		return reading{err: fmt.Errorf("a %T is no number", v)}
	}
}

func ofBool(b bool) reading {
	if b {
		return number(1)
	}
	return number(0)
}

// ofText reads a number that lost its type on the way.
func ofText(s string) reading {
	v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil {
		return reading{err: fmt.Errorf("%.40q is no number", s)}
	}
	return number(v)
}
