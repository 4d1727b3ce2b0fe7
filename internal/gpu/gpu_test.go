// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestTheTableIsWhole(t *testing.T) {
	used := map[*Metric]map[string]bool{}
	for p := range Points {
		row := &Rows[p]
		if !assert.NotNil(t, row.Metric, p) {
			continue
		}
		values := used[row.Metric]
		if values == nil {
			values = map[string]bool{}
			used[row.Metric] = values
		}
		assert.False(t, values[row.Value], "%s has %q twice", row.Metric.Name, row.Value)
		values[row.Value] = true
		if p != StatusPoint && p != XidPoint {
			assert.Equal(t, row.Metric.Attribute != "", row.Value != "", row.Metric.Name)
		}
		assert.Equal(t, p > XidPoint, row.Metric.Process, row.Metric.Name)
		assert.True(t, row.NVML != "" || row.DCGM.ID != 0, "no source has %s", row.Metric.Name)
		if row.DCGM.ID != 0 {
			assert.NotZero(t, row.DCGM.Scale)
		}
	}
	names := map[string]bool{}
	for _, m := range Metrics {
		assert.NotNil(t, used[m], "%s has no point", m.Name)
		assert.False(t, names[m.Name], m.Name)
		names[m.Name] = true
		assert.Equal(t, m.Kind == StateSet, m.Unit == "", m.Name)
		assert.NotEmpty(t, m.Description, m.Name)
	}
	assert.Len(t, used, len(Metrics))
}

// Guarantees: values that stand for none, and values that cannot be, are not taken, and are counted; report 1 and 2.
func TestWhatCannotBeIsNotTaken(t *testing.T) {
	f := func(p Point, v float64, why Reason) {
		t.Helper()
		var s Snapshot
		d := s.Add()
		d.Set(p, v)
		assert.False(t, d.Has(p))
		assert.Equal(t, int64(1), s.Refused[why])
	}
	f(Utilization, 42949672.95, OutOfRange)
	f(Utilization, 1.01, OutOfRange)
	f(Utilization, -0.01, OutOfRange)
	f(Power, math.NaN(), OutOfRange)
	f(Power, 140737488355328, OutOfRange)
	f(Temperature, 2147483632, OutOfRange)
	f(MemoryUsage, 9.2e18, OutOfRange)
	f(Energy, 9223372036854775800, Blank)
	f(PCIeReplays, math.MaxUint64, Blank)
}

func TestAMIGInstanceHasNothingThatMIGDoesNotSupport(t *testing.T) {
	var s Snapshot
	d := s.Add()
	d.UUID, d.Parent = "MIG-1", "GPU-1"
	for p := range DevicePoints {
		d.SetInt(p, 0)
		assert.Equal(t, Rows[p].MIG, d.Has(p), "%s %s", Rows[p].Metric.Name, Rows[p].Value)
	}
	for _, p := range []Point{Utilization, EncoderUtilization, DecoderUtilization, Power, Temperature, RemappedCorrectable} {
		assert.False(t, d.Has(p))
	}
	assert.Positive(t, s.Refused[NotOnMIG])
}

func TestEveryReasonOfThrottlingIsABit(t *testing.T) {
	var s Snapshot
	d := s.Add()
	d.SetThrottle(0x1|0x40, AllThrottle)
	for p := ThrottleIdle; p <= ThrottleDisplay; p++ {
		want := uint64(0)
		if p == ThrottleIdle || p == ThrottleHardwareThermal {
			want = 1
		}
		assert.True(t, d.Has(p))
		assert.Equal(t, want, d.Int(p))
	}
}

// Guarantees: used by no visible process = used − processes, never negative, and absent where it is not known.
func TestMemoryOfNoProcess(t *testing.T) {
	f := func(used uint64, known bool, want uint64, has bool, processes ...uint64) {
		t.Helper()
		var s Snapshot
		d := s.Add()
		d.SetInt(MemoryLimit, 1000)
		d.SetInt(MemoryReserved, 50)
		d.SetInt(MemoryUsage, used)
		d.Known = known
		for i, m := range processes {
			d.AddProcess(uint32(i)).Memory = m
		}
		s.Derive()
		assert.InDelta(t, float64(used)/1000, d.Float(MemoryUtilization), 1e-9)
		assert.Equal(t, has, d.Has(MemoryUnattributed))
		assert.Equal(t, want, d.Int(MemoryUnattributed))
	}
	f(500, true, 500, true)
	f(500, true, 200, true, 100, 200)
	f(500, true, 0, true, 400, 200)
	f(500, true, 0, false, 400, Unknown)
	f(500, false, 0, false)
}

// Guarantees: more memory in use than there is, is not believed, and nothing is made of it.
func TestMoreMemoryThanThereIsIsNotBelieved(t *testing.T) {
	f := func(used uint64, believed bool) {
		t.Helper()
		var s Snapshot
		d := s.Add()
		d.SetInt(MemoryLimit, 1000)
		d.SetInt(MemoryUsage, used)
		d.Known = true
		s.Derive()
		for _, p := range []Point{MemoryUsage, MemoryUtilization, MemoryUnattributed} {
			assert.Equal(t, believed, d.Has(p))
		}
		assert.True(t, d.Has(MemoryLimit))
		assert.Equal(t, !believed, s.Refused[OutOfRange] == 1)
	}
	f(1000, true)
	f(1001, false)
	f(1<<40, false)
}

// Guarantees: what instances use of the memory that they share is not held against the processes of one.
func TestSharedMemoryOfNoProcessIsNobodys(t *testing.T) {
	var s Snapshot
	whole := s.Add()
	whole.UUID, whole.MIGEnabled, whole.Known = "GPU-1", true, true
	whole.SetInt(MemoryLimit, 1000)
	whole.SetInt(MemoryUsage, 600)
	for i := range uint32(2) {
		d := s.Add()
		d.Parent, d.Shared, d.Known = "GPU-1", true, true
		d.SetInt(MemoryLimit, 500)
		d.SetInt(MemoryUsage, 400)
		d.AddProcess(i).Memory = 200
	}
	s.Derive()
	assert.Equal(t, uint64(200), whole.Int(MemoryUnattributed))
	assert.False(t, s.Devices[1].Has(MemoryUnattributed))
	assert.Equal(t, uint64(400), s.Devices[2].Int(MemoryUsage))
}

func TestMemoryOfNoProcessOfADividedGPU(t *testing.T) {
	var s Snapshot
	device := func(uuid, parent string, used uint64, processes ...uint64) *Device {
		d := s.Add()
		d.UUID, d.Parent, d.MIGEnabled, d.Known = uuid, parent, parent == "", true
		d.SetInt(MemoryLimit, 1000)
		d.SetInt(MemoryUsage, used)
		for i, m := range processes {
			d.AddProcess(uint32(i)).Memory = m
		}
		return d
	}
	whole := device("GPU-1", "", 600)
	one := device("MIG-1", "GPU-1", 300, 250)
	two := device("MIG-2", "GPU-1", 200, 100, 50)
	other := device("GPU-2", "", 100)
	s.Derive()
	assert.Equal(t, uint64(200), whole.Int(MemoryUnattributed))
	assert.Equal(t, uint64(50), one.Int(MemoryUnattributed))
	assert.Equal(t, uint64(50), two.Int(MemoryUnattributed))
	assert.Equal(t, uint64(100), other.Int(MemoryUnattributed))

	two.Known = false
	whole.Unset(MemoryUnattributed)
	s.Derive()
	assert.False(t, whole.Has(MemoryUnattributed), "what one instance does not know, the whole cannot")
}

// Guarantees: profiling that says 0 of a device that is busy, reading after reading, is not told; of an idle one it is; and one
// reading that contradicts itself is no reason to doubt; report 13.
func TestProfilingIsHeldAgainstTheUtilization(t *testing.T) {
	var s Snapshot
	f := func(utilization, graphics, sm float64, believed bool) {
		t.Helper()
		s.Reset()
		other := s.Add()
		other.UUID = "GPU-2"
		other.Set(Utilization, 1)
		other.Set(SMActive, 0.5)
		d := s.Add()
		d.UUID = "GPU-1"
		if utilization >= 0 {
			d.Set(Utilization, utilization)
		}
		d.Set(GraphicsActive, graphics)
		d.Set(SMActive, sm)
		d.Set(TensorActive, 0)
		s.Derive()
		assert.Equal(t, believed, d.Has(SMActive))
		assert.Equal(t, believed, d.Has(TensorActive))
		assert.Equal(t, !believed, d.Implausible)
		assert.Equal(t, !believed, s.Refused[Implausible] == 3)
		assert.True(t, other.Has(SMActive))
	}
	for range 3 { // work begins, and ends
		f(1, 0, 0, true)
		f(1, 0, 0, true)
		f(1, 0, 0.2, true)
		f(1, 0, 0, true)
		f(1, 0.9, 0, true)
		f(1, 0, 0, true)
		f(0, 0, 0, true)
	}
	f(1, 0, 0, true)
	f(0.5, 0, 0, true)
	f(1, 0, 0, true)
	f(1, 0, 0, false)
	f(1, 0, 0, false)
	f(0.5, 0, 0, false)
	f(-1, 0, 0, false) // the utilization was not read
	f(0.5, 0, 0.1, true)
	f(1, 0, 0, true)
	assert.Len(t, s.doubts, 1)
	f(0, 0, 0, true)
	assert.Empty(t, s.doubts)
}

func TestASnapshotThatIsReusedRemembersNothing(t *testing.T) {
	var s Snapshot
	for range 3 {
		d := s.Add()
		assert.Equal(t, Device{Minor: -1, Processes: d.Processes[:0], snapshot: &s}, *d)
		d.UUID, d.State, d.Known = "GPU-1", Lost, true
		d.Set(Power, 300)
		d.AddProcess(7).Memory = 1
		s.Refuse(Failed)
		assert.Same(t, d, s.Find("GPU-1"))
		s.Reset()
		assert.Empty(t, s.Devices)
		assert.Zero(t, s.Refused)
	}
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		s.Reset()
		s.Add().AddProcess(1)
	}))
}

func TestSetsOfPoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		points := rapid.SliceOf(rapid.Map(rapid.IntRange(0, int(Points)-1), func(i int) Point { return Point(i) }))
		a, b := points.Draw(t, "a"), points.Draw(t, "b")
		var x, y Set
		x.Add(a...)
		y.Add(b...)
		union, minus := x, x
		union.Union(&y)
		minus.Minus(&y)
		for p := range Points {
			assert.Equal(t, x.Has(p) || y.Has(p), union.Has(p))
			assert.Equal(t, x.Has(p) && !y.Has(p), minus.Has(p))
		}
		assert.Equal(t, len(a) == 0, x.Empty())
		assert.Equal(t, len(a) > 0, x.Any(a...))
		x.Remove(a...)
		assert.True(t, x.Empty())
	})
}

func TestXidsHaveAMeaning(t *testing.T) {
	assert.Equal(t, "fallen off the bus", XidMeaning(79))
	assert.Empty(t, XidMeaning(1))
}

func TestScalesAreExact(t *testing.T) {
	for n := range 1000 {
		v, err := strconv.ParseFloat(fmt.Sprintf("%d.%02d", n/100, n%100), 64)
		assert.NoError(t, err)
		assert.Equal(t, v, Field{Scale: 0.01}.In(float64(n)))
	}
	assert.InDelta(t, 3<<20, Scaled(3, 1<<20), 0)
}
