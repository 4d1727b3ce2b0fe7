// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
)

// world is what a test reads: GPUs by name, "!" for a lost one, with their instances.
type world struct {
	Ledger
	s   gpu.Snapshot
	now int64
}

// read reads GPUs such as "a", "!b" (lost), "!?" (lost without a name) and "c:1,2" (with two instances), and returns what has
// changed.
func (w *world) read(driver string, gpus ...string) []Change {
	w.s.Reset()
	w.s.Driver = driver
	for i, of := range gpus {
		lost := of[0] == '!'
		if lost {
			of = of[1:]
		}
		d := w.s.Add()
		d.UUID, d.Index = of[:1], i
		if d.UUID == "?" {
			d.UUID = ""
		}
		if lost {
			d.State = gpu.Lost
			continue
		}
		d.Model = "H100"
		for part := 2; part < len(of); part += 2 {
			d.MIGEnabled = true
			m := w.s.Add()
			m.UUID, m.Parent = "MIG-"+of[part:part+1], of[:1]
		}
	}
	w.now += 10
	w.Read(&w.s, w.now)
	return w.Take()
}

func TestWhatChangesIsToldOnce(t *testing.T) {
	w := &world{}
	assert.Empty(t, w.read("590", "a", "b:1,2"), "the first reading is no change")
	assert.Empty(t, w.read("590", "a", "b:1,2"))
	assert.Empty(t, w.read("590", "a", "b:2,1"), "in another order they are the same")
	assert.Equal(t, []Change{{Kind: Lost, UUID: "a"}}, w.read("590", "!a", "b:1,2"))
	assert.Empty(t, w.read("590", "!a", "b:1,2"))
	assert.Equal(t, []Change{{Kind: Recovered, UUID: "a"}}, w.read("590", "a", "b:1,2"))
	assert.Equal(t, []Change{{Kind: MIGChanged, UUID: "b", Divided: true, Parts: []string{"MIG-3"}}}, w.read("590", "a", "b:3"))
	assert.Equal(t, []Change{{Kind: MIGChanged, UUID: "b", Parts: nil}}, w.read("590", "a", "b"))
	assert.Equal(t, []Change{{Kind: DriverChanged, From: "590", To: "600"}}, w.read("600", "a", "b"))
	assert.Empty(t, w.read("", "a", "b"), "a version that is not told is not another one")
}

func TestAGPUThatIsLostFromTheStartIsTold(t *testing.T) {
	w := &world{}
	assert.Equal(t, []Change{{Kind: Lost, UUID: "a"}}, w.read("590", "!a"))
}

// Guarantees: a GPU that could not say who it is has the name of its place, is told as lost, and as recovered once it says who
// it is; one that was known before keeps its name.
func TestAGPUThatCannotSayWhoItIsIsTold(t *testing.T) {
	w := &world{}
	assert.Equal(t, []Change{{Kind: Lost, UUID: "index-1"}}, w.read("590", "a", "!?", "c"))
	assert.Equal(t, gpu.Lost, w.s.Find("index-1").State)
	assert.Empty(t, w.read("590", "a", "!?", "c"))
	assert.Equal(t, []Change{{Kind: Recovered, UUID: "b"}}, w.read("590", "a", "b:1,2", "c"), "that it is divided is no news")
	assert.Nil(t, w.s.Find("index-1"))
	assert.Equal(t, 5, w.Len())

	assert.Equal(t, []Change{{Kind: Lost, UUID: "b"}}, w.read("590", "a", "!?", "c"))
	assert.Equal(t, "H100", w.s.Find("b").Model)
	assert.Nil(t, w.s.Find("index-1"))
	assert.Equal(t, []Change{{Kind: Recovered, UUID: "b"}, {Kind: MIGChanged, UUID: "b"}}, w.read("590", "a", "b", "c"))

	w = &world{}
	assert.Len(t, w.read("590", "!?", "!?"), 2)
	assert.Equal(t, []Change{{Kind: Recovered, UUID: "a"}}, w.read("590", "a", "!?"))
	assert.Equal(t, []Change{{Kind: Lost, UUID: "a"}}, w.read("590", "!?", "!?"))
	assert.Equal(t, 2, w.Len())
}

// Guarantees: a GPU that is not listed any more is still there, as a lost one, with what is known of it; report 12 and 14.
func TestAGPUThatVanishesIsLost(t *testing.T) {
	w := &world{}
	w.read("590", "a", "b:1")
	assert.Equal(t, []Change{{Kind: Lost, UUID: "b"}}, w.read("590", "a"))
	assert.Empty(t, w.read("590", "a"))
	if b := w.s.Find("b"); assert.NotNil(t, b) {
		assert.Equal(t, gpu.Lost, b.State)
		assert.Equal(t, "H100", b.Model)
		assert.Equal(t, 1, b.Index)
	}
	assert.Nil(t, w.s.Find("MIG-1"))
	assert.Equal(t, []Change{{Kind: Recovered, UUID: "b"}}, w.read("590", "a", "b:1"), "its instances are as before")
	assert.Equal(t, 3, w.Len())
}

func TestWhatWasTakenAwayOnPurposeIsNotLost(t *testing.T) {
	w := &world{}
	w.read("590", "a", "b")
	w.Excuse()
	assert.Empty(t, w.read("590", "a"))
	assert.Nil(t, w.s.Find("b"))
	assert.Equal(t, []Change{{Kind: Lost, UUID: "a"}}, w.read("590"), "the excuse is for one reading")
}

// Guarantees: rows that cannot be remapped, or wait for it, show in the state until they are asked for again.
func TestRemappedRowsShowInTheState(t *testing.T) {
	var l Ledger
	f := func(set func(*gpu.Device), want gpu.State) {
		t.Helper()
		var s gpu.Snapshot
		d := s.Add()
		d.UUID = "a"
		set(d)
		l.Read(&s, 1)
		assert.Equal(t, want, d.State)
	}
	not := func(*gpu.Device) {}
	f(not, gpu.OK)
	f(func(d *gpu.Device) { d.SetInt(gpu.RemapPending, 1) }, gpu.Degraded)
	f(not, gpu.Degraded)
	f(func(d *gpu.Device) { d.SetInt(gpu.RemapFailure, 1) }, gpu.PredictedFailure)
	f(func(d *gpu.Device) { d.State = gpu.Degraded }, gpu.PredictedFailure)
	f(func(d *gpu.Device) { d.State = gpu.Lost }, gpu.Lost)
	f(func(d *gpu.Device) { d.SetInt(gpu.RemapFailure, 0); d.SetInt(gpu.RemapPending, 0) }, gpu.OK)
}

func TestXidsAreCountedByCode(t *testing.T) {
	w := &world{}
	hear := func(uuid string, codes ...uint64) {
		for _, code := range codes {
			w.Heard(gpu.Event{Kind: gpu.Xid, Time: 5, UUID: uuid, Code: code})
		}
	}
	hear("early", 79)
	w.read("590", "a")
	assert.Nil(t, w.Device("early"), "a device that no reading has is forgotten")
	hear("a", 31, 79, 31, 13)
	hear("", 31)
	m := w.Device("a")
	assert.Equal(t, []XidCount{{13, 1}, {31, 2}, {79, 1}}, m.Xids)
	assert.Equal(t, uint64(2), m.Xid(31))
	assert.Zero(t, m.Xid(48))
	for code := range uint64(2 * maxCodes) {
		hear("a", 1000+code)
	}
	assert.Len(t, m.Xids, maxCodes)
	assert.Equal(t, uint64(2*maxCodes-(maxCodes-3)), m.Others)
}

func TestDevicesAreBounded(t *testing.T) {
	var l Ledger
	var s gpu.Snapshot
	for i := range maxDevices + 10 {
		s.Add().UUID = fmt.Sprint(i)
	}
	l.Read(&s, 1)
	assert.Equal(t, maxDevices, l.Len())
	assert.Nil(t, l.Device(fmt.Sprint(maxDevices)))
	l.Heard(gpu.Event{UUID: "another", Code: 1})
	assert.Equal(t, maxDevices, l.Len())
}

// Guarantees: the start of a counter never lies after its point, and moves only when the counter falls.
func TestStartsOfCounters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m Device
		last, start := -1.0, int64(0)
		for i, v := range rapid.SliceOf(rapid.Float64Range(0, 100)).Draw(t, "values") {
			now := int64(i + 1)
			got := m.Start(gpu.Energy, v, now)
			if v < last || i == 0 {
				start = now
			}
			assert.Equal(t, start, got)
			last = v
		}
	})
}

// Guarantees: whatever comes and goes, a GPU that was ever there and not taken away on purpose is in every snapshot once.
func TestNoGPUIsForgotten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{}
		ever := map[string]bool{}
		for range rapid.IntRange(1, 20).Draw(t, "readings") {
			var gpus []string
			for _, name := range []string{"a", "b", "c"} {
				if rapid.Bool().Draw(t, name) {
					gpus = append(gpus, rapid.SampledFrom([]string{name, "!" + name, name + ":1,2"}).Draw(t, "as"))
					ever[name] = true
				}
			}
			w.read("590", gpus...)
			seen := map[string]int{}
			for _, d := range w.s.Devices {
				if !d.MIG() {
					seen[d.UUID]++
				}
			}
			assert.Len(t, seen, len(ever))
			for _, n := range seen {
				assert.Equal(t, 1, n)
			}
		}
	})
}
