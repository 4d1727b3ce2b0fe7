// SPDX-License-Identifier: Apache-2.0

package gpuleakconnector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/connector/gpuleakconnector/internal/leak"
)

func TestUnitsAreConvertedOrRefused(t *testing.T) {
	f := func(kind leak.Kind, name, unit string, want float64) {
		t.Helper()
		m := pmetric.NewMetric()
		m.SetName(name)
		m.SetUnit(unit)
		scale, ok := scaleOf(kind, m)
		assert.Equal(t, want != 0, ok, unit)
		if ok {
			assert.InDelta(t, want, scale, 0)
		}
	}
	const name = "nvidia.gpu.process.memory.usage"
	for unit, want := range map[string]float64{
		"": 1, "By": 1, "bytes": 1, "KiBy": 1 << 10, "MiBy": 1 << 20, "GiBy": 1 << 30, "TiBy": 1 << 40, "kBy": 1e3, "MBy": 1e6, "GBy": 1e9, "MiB": 1 << 20, "1": 0, "%": 0, "s": 0, "furlong": 0, "By/s": 0,
	} {
		for _, kind := range []leak.Kind{leak.Used, leak.Live, leak.Limit, leak.DeviceUsed, leak.Reserved, leak.Unattributed} {
			f(kind, name, unit, want)
		}
	}
	f(leak.Limit, "hw_gpu_memory_limit_bytes", "", 1)
	f(leak.Limit, "hw_gpu_memory_limit_mebibytes", "", 1<<20)
	f(leak.Cache, "vllm:kv_cache_usage_perc", "", 1)
	f(leak.Cache, "vllm:kv_cache_usage_perc", "%", 0.01)
	f(leak.Cache, "vllm:kv_cache_usage_perc", "By", 0)
	f(leak.Running, "vllm:num_requests_running", "{request}", 1)
	f(leak.Served, "vllm:request_success", "", 1)
}

// Scenario: a server leaks 1 % an hour, which is told in MiBy; another metric comes in seconds. Guarantees: the rate is in bytes, and what is no
// memory is refused and logged once.
func TestALeakToldInMebibytesIsOneOfBytes(t *testing.T) {
	r := newRig(t, nil)
	for tick := range 480 {
		s := leaking(float64(tick) / 120)
		metrics := s.sm.Metrics()
		for i := range metrics.Len() {
			switch m := metrics.At(i); m.Name() {
			case "nvidia.gpu.process.memory.usage", "hw.gpu.memory.limit":
				p := m.Sum().DataPoints().At(0)
				p.SetDoubleValue(p.DoubleValue() / (1 << 20))
				m.SetUnit("MiBy")
			case "hw.gpu.memory.usage":
				m.SetUnit("s")
			}
		}
		r.send(s.Metrics)
	}
	if assert.Len(t, r.records(), 1) {
		assert.InEpsilon(t, 0.4*gib/3600, r.records()[0].Attributes().AsRaw()["gpu.leak.rate"], 0.05)
	}
	assert.Equal(t, int64(480), r.counted("points_refused")["unsupported_shape"])
	assert.Len(t, r.oddities, 1)
}

// Scenario: a process holds as much as ever, of which a receiver that has begun anew counts more and more, and tells how many calls it has missed, as a
// Prometheus server hands that on. Guarantees: without those, that is a leak, and with them it is none.
func TestWhatIsLiveIsNotJudgedWhileCallsAreMissed(t *testing.T) {
	f := func(tells bool, want int) {
		t.Helper()
		r := newRig(t, nil)
		for tick := range 480 {
			h := float64(tick) / 120
			s := newScrape(t0.Add(time.Duration(tick)*30*time.Second)).put("cuda.memory.live", (1+h)*gib, "process.pid", 71)
			if tells {
				s.put("cuda_memory_missed_total", float64(tick/10), "process.pid", 71, "cuda.memory.miss", "unknown_free").
					put("cuda_memory_missed_total", 0, "process.pid", 71, "cuda.memory.miss", "max_entries")
			}
			r.send(s.Metrics)
		}
		assert.Len(t, r.records(), want)
		assert.Empty(t, r.counted("points_refused"))
	}
	f(false, 1)
	f(true, 0)
}
