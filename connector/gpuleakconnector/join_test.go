// SPDX-License-Identifier: Apache-2.0

package gpuleakconnector

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// worker is what nvidia_gpu says of a process on a GPU.
func worker(pid int, device string, more map[string]any) map[string]any {
	m := map[string]any{"hw.id": device, "hw.name": "GPU 0", "process.pid": pid, "process.executable.name": "python3.12"}
	maps.Copy(m, more)
	return m
}

// inPod is what it says of one in a pod, with a kubelet that is asked.
var inPod = map[string]any{
	"container.id": "4f1c", "k8s.pod.uid": "0a1b", "k8s.namespace.name": "llm", "k8s.pod.name": "chat-0", "k8s.container.name": "vllm",
}

func attributes(m map[string]any) (list []any) {
	for k, v := range m {
		list = append(list, k, v)
	}
	return list
}

// scraped is a scrape of vLLM as the Prometheus receiver has it: nothing in it knows of processes or devices.
func scraped(at time.Time, running, served float64, resource map[string]any) pmetric.Metrics {
	s := newScrape(at)
	m := s.ResourceMetrics().At(0).Resource().Attributes()
	m.Clear()
	m.PutStr("service.name", "vllm")
	m.PutStr("service.instance.id", "10.0.0.7:8000")
	m.PutStr("server.address", "10.0.0.7")
	for k, v := range resource {
		m.PutStr(k, v.(string))
	}
	s.gauge("vllm:num_requests_running", running, "model_name", "qwen2-72b", "engine", "0")
	s.gauge("vllm:kv_cache_usage_perc", 0.4, "model_name", "qwen2-72b", "engine", "0")
	s.put("vllm:request_success", served, "model_name", "qwen2-72b", "engine", "0", "finished_reason", "stop")
	return s.Metrics
}

// Scenario: an engine works on two GPUs by two processes, leaks a little with each request, and is scraped at a front end. Guarantees: the scrape
// finds its processes by what service discovery or a processor says of the pod, in any of its spellings; each process is told by what a request takes of it; and
// where nothing of it is known, that is counted and no traffic is made up.
func TestAPlainScrapeFindsTheProcessesOfItsEngine(t *testing.T) {
	f := func(process, resource map[string]any, unjoined map[string]int64) {
		t.Helper()
		r := newRig(t, nil)
		for tick := range 4 * 120 {
			h := float64(tick) / 120
			at := t0.Add(time.Duration(tick) * 30 * time.Second)
			s := newScrape(at)
			for i, device := range []string{"GPU-0", "GPU-1"} {
				s.put("nvidia.gpu.process.memory.usage", 40*gib*(1+0.01*h), attributes(worker(71+i, device, process))...)
			}
			r.send(s.Metrics)
			r.send(scraped(at, 8, h*3600, resource))
		}
		r.sizes()
		assert.Equal(t, unjoined, r.counted("traffic_unjoined"))
		for _, pid := range []string{"71", "72"} {
			p, ok := r.last("gpu.memory.per_request", "process.pid", pid)
			if assert.Equal(t, len(unjoined) == 0, ok, pid); ok {
				assert.InEpsilon(t, 40*1.035*gib/8, p.DoubleValue(), 0.01)
			}
		}
		require.Len(t, r.records(), 2)
		for _, record := range r.records() {
			got := record.Attributes().AsRaw()
			if len(unjoined) > 0 {
				assert.NotContains(t, got, "gpu.leak.per_served_request")
				continue
			}
			assert.InEpsilon(t, 0.4*gib/3600, got["gpu.leak.per_served_request"], 0.02)
			assert.InDelta(t, 0.6, got["gpu.leak.kv_cache_headroom"], 1e-9)
		}
	}
	f(inPod, map[string]any{"k8s.namespace.name": "llm", "k8s.pod.name": "chat-0"}, map[string]int64{})
	f(inPod, map[string]any{"k8s.pod.uid": "0a1b"}, map[string]int64{})
	f(inPod, map[string]any{"container.id": "4f1c", "host.name": "gateway"}, map[string]int64{})
	f(inPod, map[string]any{"namespace": "llm", "pod": "chat-0"}, map[string]int64{}) // a PodMonitor's labels
	const points = 3*4*120 - 1 - 3*3                                                  // but the first of the counter, and three scrapes that are not judged yet
	f(inPod, map[string]any{"k8s.namespace.name": "llm", "k8s.pod.name": "chat-1", "host.name": "node-1"}, map[string]int64{"no_process": points})
	f(nil, map[string]any{"host.name": "node-1"}, map[string]int64{"ambiguous": points})
}

// Scenario: a laptop, of which nothing says its name: one engine, and one process on the GPU. Guarantees: the defaults join them.
func TestTheOnlyEngineOfAMachineIsThatOfTheOnlyProcess(t *testing.T) {
	r := newRig(t, nil)
	for tick := range 60 {
		at := t0.Add(time.Duration(tick) * 30 * time.Second)
		s := newScrape(at).put("nvidia.gpu.process.memory.usage", 40*gib, attributes(worker(71, "GPU-0", nil))...)
		s.ResourceMetrics().At(0).Resource().Attributes().Clear()
		r.send(s.Metrics)
		r.send(scraped(at, 8, 1, nil))
	}
	p, ok := r.last("gpu.memory.per_request", "process.pid", "71")
	require.True(t, ok)
	assert.InEpsilon(t, 5*gib, p.DoubleValue(), 1e-9)
}

// Scenario: cuda_memory beside nvidia_gpu, as both write it: the probes know the process and its container, and seldom the device. What is allocated
// stays as it is while the driver holds more and more. Guarantees: that is one process, and its memory is in pieces.
func TestWhatTheProbesSeeIsHeldAgainstWhatTheDriverHolds(t *testing.T) {
	f := func(live func(h float64) float64, want string) {
		t.Helper()
		r := newRig(t, nil)
		for tick := range 4 * 120 {
			h := float64(tick) / 120
			at := t0.Add(time.Duration(tick) * 30 * time.Second)
			s := newScrape(at).put("nvidia.gpu.process.memory.usage", 40*gib*(1+0.01*h), attributes(worker(71, "GPU-0", inPod))...)
			probe := map[string]any{"process.pid": 71, "process.executable.name": "python3.12"}
			maps.Copy(probe, inPod)
			r.send(s.put("cuda.memory.live", live(h), attributes(probe)...).Metrics)
		}
		require.Len(t, r.records(), 1)
		got := r.records()[0].Attributes().AsRaw()
		assert.Equal(t, want, got["gpu.leak.cause"])
		assert.Equal(t, "GPU-0", got["hw.id"])
		assert.Equal(t, "chat-0", got["k8s.pod.name"])
		_, besides := r.last("gpu.leak.state", "state", "leaking", "hw.id", "")
		assert.False(t, besides, "what is of no device is not judged besides")
	}
	f(func(float64) float64 { return 20 * gib }, "fragmentation")
	f(func(h float64) float64 { return 20*gib + 0.4*gib*h }, "allocation_not_freed")
}
