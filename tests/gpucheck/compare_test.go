// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

var start = time.Unix(1_700_000_000, 0)

func after(seconds float64) time.Time {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

// samples are what nvidia-smi said of a field every second, each time for a tenth of one.
func samplesOf(field string, values ...string) (all []*sample) {
	for i, v := range values {
		all = append(all, &sample{begun: after(float64(i)), ended: after(float64(i) + 0.1), gpus: map[string]map[string]string{"GPU-1": {field: v}}})
	}
	return all
}

func points(metric string, first float64, values ...float64) (all []point) {
	for i, v := range values {
		all = append(all, point{metric: metric, device: "GPU-1", at: after(first + float64(i)), value: v})
	}
	return all
}

var powerPair = moving("hw.power", "", "", "power.draw", 1, 5, 0.1, "")

func TestWhatMovesMayLieBetweenWhatWasSaidBeforeAndAfter(t *testing.T) {
	f := func(name string, value float64, agrees bool) {
		t.Helper()
		p := powerPair
		p.moves = false
		v, ok := judge(&p, []string{"GPU-1"}, samplesOf("power.draw", "100.00", "200.00"), points("hw.power", 0.5, value))
		assert.True(t, ok, name)
		assert.Equal(t, 1, v.compared, name)
		assert.Equal(t, agrees, !v.failed(), "%s: %s", name, v.note)
	}
	f("between", 150, true)
	f("the first", 100, true)
	f("the tolerance below", 75, true) // 5 W + 10 % of 200 W
	f("more", 74, false)
	f("the tolerance above", 225, true)
	f("more", 226, false)
}

func TestWhatDoesNotLieBetweenTwoLooksIsNotCompared(t *testing.T) {
	v, ok := judge(&powerPair, []string{"GPU-1"}, samplesOf("power.draw", "100.00", "100.00"), points("hw.power", -1, 900, 900))
	assert.True(t, ok)
	assert.Zero(t, v.compared)
	assert.Equal(t, "nothing could be compared", v.note)
}

func TestWhatMovesHasToAgreeNineTimesOfTen(t *testing.T) {
	f := func(wrong int, agrees bool) {
		t.Helper()
		var said []string
		values := make([]float64, 20)
		for i := range 21 {
			said = append(said, "100.00")
			if i < 20 {
				values[i] = 100
			}
		}
		for i := range wrong {
			values[i] = 500
		}
		v, _ := judge(&powerPair, []string{"GPU-1"}, samplesOf("power.draw", said...), points("hw.power", 0.5, values...))
		assert.Equal(t, 20, v.compared)
		assert.Equal(t, agrees, !v.failed(), fmt.Sprint(wrong))
		still := powerPair
		still.moves = false
		v, _ = judge(&still, []string{"GPU-1"}, samplesOf("power.draw", said...), points("hw.power", 0.5, values...))
		assert.Equal(t, wrong == 0, !v.failed(), fmt.Sprint(wrong))
	}
	f(0, true)
	f(2, true)
	f(3, false)
}

func TestWhatJumpsMayBeAnythingThatWasSaid(t *testing.T) {
	p := jumping("hw.power", "", "", "power.draw")
	v, _ := judge(&p, []string{"GPU-1"}, samplesOf("power.draw", "0", "0", "100"), points("hw.power", 0.5, 0.9, 0.2))
	assert.False(t, v.failed(), v.note)
	v, _ = judge(&p, []string{"GPU-1"}, samplesOf("power.draw", "0", "0", "30"), points("hw.power", 0.5, 0.9, 0.2))
	assert.True(t, v.failed())
}

func TestWhatOneSideAloneHasIsAFailure(t *testing.T) {
	v, ok := judge(&powerPair, []string{"GPU-1"}, samplesOf("power.draw", "100.00", "100.00"), nil)
	assert.True(t, ok)
	assert.Contains(t, v.note, "the receiver has not")
	v, ok = judge(&powerPair, []string{"GPU-1"}, samplesOf("power.draw", "[N/A]", "[N/A]"), points("hw.power", 0.5, 100))
	assert.True(t, ok)
	assert.Contains(t, v.note, "nvidia-smi says that there is none")
	_, ok = judge(&powerPair, []string{"GPU-1"}, samplesOf("power.draw", "[N/A]", "[N/A]"), nil)
	assert.False(t, ok)
}

func TestEnergyGrowsByThePower(t *testing.T) {
	said := samplesOf("power.draw", "300.00", "320.00", "310.00")
	f := func(watts float64, agrees bool) {
		t.Helper()
		v, ok := energy([]string{"GPU-1"}, said, points("hw.energy", 0.5, 1e6, 1e6+watts, 1e6+2*watts))
		assert.True(t, ok)
		assert.Equal(t, agrees, !v.failed(), v.note)
	}
	f(305, true)
	f(260, true)
	f(200, false)
	f(0, false)
}

func TestNumbersAsNvidiaSMIWritesThem(t *testing.T) {
	f := func(text string, want float64, ok bool) {
		t.Helper()
		v, isNumber := number(text)
		assert.Equal(t, ok, isNumber, text)
		if ok {
			assert.Equal(t, want, v, text)
		}
	}
	f("59", 59, true)
	f("71.15", 71.15, true)
	f("0x00000000000001FF", 511, true)
	f("Yes", 1, true)
	f("No", 0, true)
	f("", 0, false)
	f("Enabled", 0, false)
	for _, text := range []string{"", "N/A", "[N/A]", "[Not Supported]", "[Unknown Error]", "[GPU is lost]"} {
		assert.False(t, hasValue(text), text)
	}
	assert.Equal(t, "0000:3b:00.0", shortPCI("00000000:3B:00.0"))
}
