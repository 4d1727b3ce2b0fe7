// SPDX-License-Identifier: Apache-2.0

package openslo

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestADurationIsWhatItWasWritten(t *testing.T) {
	f := func(s string, want time.Duration) {
		t.Helper()
		d, err := ParseDuration(s)
		require.NoError(t, err)
		assert.Equal(t, s, d.String())
		assert.Equal(t, want, d.Approx())
	}
	const day = 24 * time.Hour
	f("5m", 5*time.Minute)
	f("12h", 12*time.Hour)
	f("28d", 28*day)
	f("4w", 28*day)
	f("1M", 30*day)
	f("1Q", 90*day)
	f("1Y", 365*day)
	for _, s := range []string{"", "d", "5", "5s", "0d", "-1d", "1.5h", "1 d"} {
		_, err := ParseDuration(s)
		assert.Error(t, err, s)
	}
}

func TestAnEventIsGoodWhenItsComparisonHolds(t *testing.T) {
	f := func(op Op, below, equal, above, atMost bool) {
		t.Helper()
		o := Objective{Op: op, Value: 0.8}
		assert.Equal(t, [3]bool{below, equal, above}, [3]bool{o.Holds(0.7), o.Holds(0.8), o.Holds(0.9)}, op)
		assert.Equal(t, atMost, op.AtMost(), op)
	}
	f(OpLTE, true, true, false, true)
	f(OpLT, true, false, false, true)
	f(OpGTE, false, true, true, false)
	f(OpGT, false, false, true, false)
}

func TestUnitsOfDataBecomeBaseUnits(t *testing.T) {
	f := func(unit, wantBase string, wantScale float64) {
		t.Helper()
		base, scale, ok := BaseUnit(unit)
		assert.Equal(t, wantBase != "", ok, unit)
		assert.Equal(t, wantBase, base, unit)
		assert.InDelta(t, wantScale, scale, 0, unit)
	}
	f("ms", "seconds", 1e-3)
	f("1", "ratio", 1)
	f("By", "bytes", 1)
	f("{request}", "requests", 1)
	f("{tokens}", "tokens", 1)
	f("{token}/s", "tokens_per_second", 1)
	f("GiBy/s", "bytes_per_second", 1<<30)
	f("%/s", "", 0)
	f("By/s/s", "", 0)
	f("parsec", "", 0)
	f("", "", 0)
}
