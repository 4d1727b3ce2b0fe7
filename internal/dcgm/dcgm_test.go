// SPDX-License-Identifier: Apache-2.0

package dcgm

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu"
)

var (
	library  string // a fake
	scenario string
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "dcgm")
	if err != nil {
		panic(err)
	}
	scenario = filepath.Join(dir, "scenario")
	if err := os.Setenv(fakegpu.Variable, scenario); err != nil {
		panic(err)
	}
	if library, err = fakegpu.BuildDCGM(dir); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func write(t *testing.T, world *fakegpu.Scenario) {
	t.Helper()
	require.NoError(t, world.Write(scenario))
}

func load(t *testing.T) *Library {
	t.Helper()
	l, err := Load(library)
	require.NoError(t, err)
	return l
}

// values returns the values of fields by entity.
func values(t *testing.T, s *Session, entities []Entity, fields ...uint16) map[Entity][]Value {
	t.Helper()
	v := &Values{}
	require.NoError(t, s.Latest(entities, fields, false, v))
	require.Equal(t, len(entities)*len(fields), v.Len())
	all := map[Entity][]Value{}
	for i := range v.Len() {
		all[v.At(i).Entity()] = append(all[v.At(i).Entity()], v.At(i))
	}
	return all
}

func TestALibraryThatIsNotThereIsNotFound(t *testing.T) {
	_, err := Load("/nowhere/libdcgm.so.4")
	require.ErrorIs(t, err, ErrNotFound)
	assert.ErrorContains(t, err, "/nowhere/libdcgm.so.4")
}

// Guarantees: a library that lacks a function is refused, by the name of the function; the process lives.
func TestALibraryThatLacksAFunctionIsNotUsed(t *testing.T) {
	path, err := fakegpu.BuildDCGM(t.TempDir(), "dcgmWatchFields")
	require.NoError(t, err)
	_, err = Load(path)
	require.ErrorIs(t, err, ErrNotFound)
	assert.ErrorContains(t, err, "lacks dcgmWatchFields")
}

func TestWhatIsWatchedIsRead(t *testing.T) {
	write(t, fakegpu.Server(2, 0, 1))
	for name, begin := range map[string]func() (*Session, error){
		"embedded": load(t).Embedded,
		"tcp":      func() (*Session, error) { return load(t).Connect("localhost:5555", false, time.Second) },
		"unix":     func() (*Session, error) { return load(t).Connect("/run/socket", true, time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			s, err := begin()
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close()) }()
			gpus, err := s.GPUs(nil)
			require.NoError(t, err)
			require.Equal(t, []Entity{{GPU, 0}, {GPU, 1}}, gpus)

			unwatched := values(t, s, gpus, 150)[gpus[0]][0]
			require.ErrorIs(t, unwatched.Status(), NotWatched)

			fields := []uint16{150, 155, 203, 253, 1002, 390}
			require.NoError(t, s.Watch(AllGPUs, fields, 10*time.Second))
			require.NoError(t, s.Update())
			got := values(t, s, gpus, fields...)
			for _, e := range gpus {
				var numbers []float64
				for _, v := range got[e] {
					f, _, presence := v.Number()
					require.NoError(t, v.Status())
					assert.WithinDuration(t, time.Now(), time.Unix(0, v.Time()), time.Minute)
					if v.Field() == 390 {
						assert.Equal(t, Absent, presence)
						continue
					}
					assert.Equal(t, Present, presence)
					numbers = append(numbers, f)
				}
				assert.Equal(t, []float64{59, 631.95, 100, 479, 0.9725}, numbers)
			}

			v := &Values{}
			require.NoError(t, s.Latest(gpus[1:], []uint16{54, 53, 1}, true, v))
			assert.Equal(t, "GPU-00000001-0000-0000-0000-000000000000", v.At(0).Text())
			assert.Equal(t, "0000000000001", v.At(1).Text())
			assert.Equal(t, "590.48.01", v.At(2).Text())
		})
	}
	stats, err := fakegpu.DCGMStats(scenario)
	require.NoError(t, err)
	assert.Zero(t, stats.Initialised)
	assert.Zero(t, stats.EventSets)
	assert.Zero(t, stats.Invalid)
}

func TestPartsOfADividedGPU(t *testing.T) {
	write(t, fakegpu.H100MIG())
	s, err := load(t).Embedded()
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	parts, err := s.Parts(nil)
	require.NoError(t, err)
	require.Len(t, parts, 8)
	assert.Equal(t, Part{
		Entity: Entity{GPUInstance, 0}, Parent: Entity{GPU, 0}, GPU: "GPU-00000000-0000-0000-0000-000000000000", GPUInstance: 2, ComputeInstance: NoInstance,
	}, parts[0])
	assert.Equal(t, Part{
		Entity: Entity{ComputeInstance, 0}, Parent: Entity{GPUInstance, 0}, GPU: "GPU-00000000-0000-0000-0000-000000000000", GPUInstance: 2, ComputeInstance: 0,
	}, parts[1])
	v := &Values{}
	require.NoError(t, s.Latest([]Entity{{GPUInstance, 0}, {GPUInstance, 3}}, []uint16{50}, true, v))
	assert.Equal(t, "3g.40gb", v.At(0).Text())
	assert.Equal(t, "1g.10gb", v.At(1).Text())

	write(t, fakegpu.H100())
	parts, err = s.Parts(parts[:0])
	require.NoError(t, err)
	assert.Empty(t, parts)
}

// Guarantees: values that stand for none are told apart from values; report 2.
func TestBlanksAreNoValues(t *testing.T) {
	world := fakegpu.H100()
	d := &world.GPUs[0].Device
	d.SetExact("power", fakegpu.Blank)
	d.SetExact("temperature", fakegpu.Blank)
	d.Remove("energy")
	write(t, world)
	s, err := load(t).Embedded()
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	fields := []uint16{155, 150, 156, 203}
	require.NoError(t, s.Watch(AllGPUs, fields, time.Second))
	var presences []Presence
	for _, v := range values(t, s, []Entity{{GPU, 0}}, fields...)[Entity{GPU, 0}] {
		_, _, p := v.Number()
		presences = append(presences, p)
	}
	assert.Equal(t, []Presence{Blank, Blank, Absent, Present}, presences)
}

func TestAHostEngineThatIsAwayOrRestartedIsAnError(t *testing.T) {
	world := fakegpu.H100()
	write(t, world)
	l := load(t)
	s, err := l.Connect("localhost:5555", false, time.Second)
	require.NoError(t, err)
	world.Rules = []fakegpu.Rule{{Function: fakegpu.RuleHostEngine, GPU: fakegpu.All, Instance: fakegpu.All, Return: 1}}
	write(t, world)
	_, err = s.GPUs(nil)
	require.ErrorIs(t, err, ConnectionNotValid)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())

	world.Rules = append(world.Rules, fakegpu.Rule{Function: "dcgmConnect_v2", GPU: fakegpu.All, Instance: fakegpu.All, Return: int(ConnectionNotValid)})
	write(t, world)
	_, err = l.Connect("localhost:5555", false, time.Second)
	require.ErrorIs(t, err, ConnectionNotValid)
	assert.ErrorContains(t, err, "dcgmConnect_v2 to localhost:5555: dcgm: the connection to the host engine is not valid")
}

// Guarantees: reading again and again costs no memory.
func BenchmarkLatest(b *testing.B) {
	if err := fakegpu.Server(8, 0, 1).Write(scenario); err != nil {
		b.Fatal(err)
	}
	l, err := Load(library)
	if err != nil {
		b.Fatal(err)
	}
	s, err := l.Embedded()
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	gpus, err := s.GPUs(nil)
	if err != nil {
		b.Fatal(err)
	}
	fields := []uint16{100, 101, 112, 140, 150, 155, 156, 202, 203, 204, 206, 207, 250, 252, 253, 312, 313, 1001, 1002, 1003, 1004, 1005}
	if err := s.Watch(AllGPUs, fields, time.Second); err != nil {
		b.Fatal(err)
	}
	v := &Values{}
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Latest(gpus, fields, false, v); err != nil {
			b.Fatal(err)
		}
	}
}
