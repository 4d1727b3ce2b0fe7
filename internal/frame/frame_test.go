// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/internal/intake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Guarantees: work is done again and again until it is stopped, is told that it is, and is waited for, but not for ever.
func TestWorkStops(t *testing.T) {
	var w Work
	assert.False(t, w.Started())
	w.Start()
	assert.True(t, w.Started())
	var times atomic.Int64
	release := make(chan struct{})
	w.Every(time.Millisecond, func(context.Context) { times.Add(1) })
	w.Go(func(ctx context.Context) { <-ctx.Done(); <-release })
	require.Eventually(t, func() bool { return times.Load() > 3 }, time.Minute, time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	require.ErrorIs(t, w.Stop(ctx), context.DeadlineExceeded)
	cancel()
	close(release)
	require.NoError(t, w.Stop(t.Context()))
	after := times.Load()
	time.Sleep(5 * time.Millisecond)
	assert.Equal(t, after, times.Load())
}

// diary is a state of one number in each of two shards.
type diary struct {
	numbers map[int][]int
	all     bool // the next Take takes all
	changed map[int]bool
	kept    int
	refuses bool
}

func (d *diary) Take() Snapshot {
	s := page{}
	for shard, n := range d.numbers {
		if d.all || d.changed[shard] {
			s[shard] = n
		}
	}
	d.all, d.changed = false, map[int]bool{}
	return s
}
func (d *diary) Kept()         { d.kept++ }
func (d *diary) Lost()         { d.all = true }
func (d *diary) Forget() error { d.numbers = map[int][]int{}; return nil }
func (d *diary) TakeUp(parts map[string][]byte) ([]zap.Field, error) {
	if d.refuses {
		return nil, errors.New("not this one")
	}
	all, err := Shards[int](parts, "numbers/")
	d.numbers = map[int][]int{9: all}
	return nil, err
}

type page map[int][]int

func (p page) Encode(to *Parts) { PutShards(to, "numbers/", p) }

// drawer is a storage that may be jammed.
type drawer struct {
	component.Component
	values map[string][]byte
	jammed bool
}

func (d *drawer) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return d, nil
}
func (d *drawer) Get(_ context.Context, key string) ([]byte, error) { return d.values[key], nil }
func (d *drawer) Set(context.Context, string, []byte) error         { return nil }
func (d *drawer) Delete(context.Context, string) error              { return nil }
func (*drawer) Close(context.Context) error                         { return nil }
func (d *drawer) Batch(_ context.Context, ops ...*storage.Operation) error {
	for _, op := range ops {
		switch {
		case op.Type == storage.Get:
			op.Value = d.values[op.Key]
		case d.jammed:
			return errors.New("no space left on device")
		case op.Type == storage.Set:
			d.values[op.Key] = op.Value
		default:
			delete(d.values, op.Key)
		}
	}
	return nil
}

type house struct {
	component.Host
	drawer *drawer
}

var drawerID = component.MustNewID("file_storage")

func (h house) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{drawerID: h.drawer}
}

// keeperOf makes a keeper that has taken up what is in a drawer.
func keeperOf(t *testing.T, d *drawer, state State) (k *Keeper, tel *componenttest.Telemetry, known bool) {
	tel = componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	own, err := NewTelemetry(tel.NewTelemetrySettings(), Spec{
		Scope: "test", Component: "test", Dropped: Instrument{Name: "dropped", Unit: "{point}", Description: "Dropped."},
		Gauges: []Instrument{{Name: "things", Unit: "{thing}", Description: "Things."}},
	})
	require.NoError(t, err)
	own.Set(Own, 7)
	k = &Keeper{State: state, Own: own, Logger: zap.NewNop(), Now: time.Now, Name: "test"}
	known, err = k.Restore(t.Context(), house{componenttest.NewNopHost(), d}, &drawerID, component.KindProcessor, component.MustNewID("test"))
	require.NoError(t, err)
	require.True(t, k.Keeps())
	return k, tel, known
}

func count(t *testing.T, tel *componenttest.Telemetry, name string) int64 {
	m, err := tel.GetMetric(name)
	if err != nil {
		return 0
	}
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		return data.DataPoints[0].Value
	case metricdata.Gauge[int64]:
		return data.DataPoints[0].Value
	}
	t.Fatalf("%s is no number", name)
	return 0
}

// Guarantees: what changed is written, and what could not be written is written with the next checkpoint; what was written is taken
// up; and a state that cannot be taken up begins empty. All of it is counted.
func TestAStateIsKept(t *testing.T) {
	d := &drawer{values: map[string][]byte{}}
	first := &diary{numbers: map[int][]int{1: {10}, 2: {20}}, changed: map[int]bool{1: true}}
	k, tel, known := keeperOf(t, d, first)
	assert.False(t, known)
	d.jammed = true
	k.Save(t.Context())
	assert.Zero(t, first.kept)
	assert.Equal(t, int64(1), count(t, tel, "otelcol_test_checkpoints_failed"))
	d.jammed = false
	k.Save(t.Context())
	assert.Equal(t, 1, first.kept)
	assert.Positive(t, count(t, tel, "otelcol_test_checkpoint_size"))
	assert.Equal(t, int64(7), count(t, tel, "otelcol_test_things"))

	second := &diary{}
	_, _, known = keeperOf(t, d, second)
	assert.True(t, known)
	assert.ElementsMatch(t, []int{10, 20}, second.numbers[9])

	third := &diary{refuses: true}
	k, tel, known = keeperOf(t, d, third)
	assert.False(t, known)
	assert.Empty(t, third.numbers)
	assert.Equal(t, int64(1), count(t, tel, "otelcol_test_checkpoints_damaged"))
	require.NoError(t, k.Close(t.Context()))
	require.NoError(t, k.Own.Shutdown())
	require.NoError(t, new(Keeper).Close(t.Context()), "nothing was opened")
}

func TestAPartThatCannotBeEncodedIsNoCheckpoint(t *testing.T) {
	var p Parts
	p.Put("a", 1)
	p.Put("b", func() {})
	p.Put("c", 2)
	require.Error(t, p.err)
	assert.NotContains(t, p.all, "c")
	require.ErrorContains(t, Get(map[string][]byte{"a": []byte("\x82")}, "a", new(int)), "a: ")
}

// Guarantees: a batch's counts are handed on once.
func TestCountsAreHandedOn(t *testing.T) {
	k, tel, _ := keeperOf(t, &drawer{values: map[string][]byte{}}, &diary{})
	c := intake.Counts{Accepted: 3}
	c.Refuse(intake.Late, 2)
	for range 2 {
		k.Own.Consumed(t.Context(), &c, time.Millisecond)
	}
	assert.Equal(t, int64(3), count(t, tel, "otelcol_test_points_accepted"))
	assert.Equal(t, int64(2), count(t, tel, "otelcol_test_points_refused"))
}
