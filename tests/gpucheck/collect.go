// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

// point is a value that the receiver wrote.
type point struct {
	metric     string
	device     string // hw.id
	attributes map[string]string
	pid        int64
	at         time.Time
	value      float64
}

// sink takes metrics by OTLP and keeps their points.
type sink struct {
	mu        sync.Mutex
	points    []point
	resources map[string]map[string]string // by hw.id
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	req := pmetricotlp.NewExportRequest()
	if err == nil {
		err = req.UnmarshalProto(body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.take(req.Metrics())
	w.Header().Set("Content-Type", "application/x-protobuf") // an empty answer means that all was taken
}

func (s *sink) take(md pmetric.Metrics) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rm := range md.ResourceMetrics().All() {
		resource := texts(rm.Resource().Attributes())
		s.resources[resource["hw.id"]] = resource
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				var points pmetric.NumberDataPointSlice
				switch m.Type() {
				case pmetric.MetricTypeGauge:
					points = m.Gauge().DataPoints()
				case pmetric.MetricTypeSum:
					points = m.Sum().DataPoints()
				default:
					continue
				}
				for _, p := range points.All() {
					if !p.Flags().NoRecordedValue() {
						s.points = append(s.points, pointOf(m.Name(), resource["hw.id"], p))
					}
				}
			}
		}
	}
}

func pointOf(metric, device string, p pmetric.NumberDataPoint) point {
	out := point{metric: metric, device: device, attributes: texts(p.Attributes()), at: p.Timestamp().AsTime(), value: p.DoubleValue()}
	if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
		out.value = float64(p.IntValue())
	}
	if pid, ok := p.Attributes().Get("process.pid"); ok {
		out.pid = pid.Int()
	}
	return out
}

func texts(m pcommon.Map) map[string]string {
	all := map[string]string{}
	for k, v := range m.All() {
		all[k] = v.AsString()
	}
	return all
}

// said is all that came so far.
func (s *sink) said() (points []point, resources map[string]map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.points, s.resources
}

// configuration reads GPUs every second and tells them to the sink. Everything that nvidia-smi can be compared with is on.
const configuration = `
receivers:
  nvidia_gpu:
    collection_interval: 1s
    source: %q
    nvml_library: %q
    kubelet_socket: ""
exporters:
  otlp_http:
    metrics_endpoint: http://%s/v1/metrics
    compression: none
    sending_queue: {enabled: false}
service:
  telemetry: {metrics: {level: none}, logs: {level: warn}}
  pipelines:
    metrics: {receivers: [nvidia_gpu], exporters: [otlp_http]}
`

// collector is the shipped binary with the receiver.
type collector struct {
	cmd    *exec.Cmd
	log    *bytes.Buffer
	ended  chan struct{}
	server *http.Server
	*sink
}

// startCollector runs the binary in a folder of its own.
func startCollector(binary, source, library, dir string) (*collector, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &collector{log: &bytes.Buffer{}, ended: make(chan struct{}), sink: &sink{resources: map[string]map[string]string{}}}
	c.server = &http.Server{Handler: c.sink, ReadHeaderTimeout: time.Minute}
	go func() { _ = c.server.Serve(listener) }() // ends with Close
	config := filepath.Join(dir, "gpucheck.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, configuration, source, library, listener.Addr()), 0o600); err != nil {
		return nil, err
	}
	if binary, err = filepath.Abs(binary); err != nil {
		return nil, err
	}
	c.cmd = exec.Command(binary, "--config", config)
	c.cmd.Dir, c.cmd.Stdout, c.cmd.Stderr = dir, c.log, c.log
	if err := c.cmd.Start(); err != nil {
		_ = c.server.Close() // nobody uses it
		return nil, err
	}
	go func() {
		_ = c.cmd.Wait() // the state is read from cmd.ProcessState
		close(c.ended)
	}()
	return c, nil
}

// wait waits until the receiver has told something of a GPU.
func (c *collector) wait(ctx context.Context) error {
	for {
		if points, _ := c.said(); len(points) > 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the receiver told of no GPU: %w", ctx.Err())
		case <-c.ended:
			return fmt.Errorf("the Collector ended (%s)", c.cmd.ProcessState)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// stop ends the binary and says whether it had ended before, or badly.
func (c *collector) stop() error {
	defer func() { _ = c.server.Close() }() // nobody uses it any longer
	select {
	case <-c.ended:
		return fmt.Errorf("the Collector ended by itself (%s)", c.cmd.ProcessState)
	default:
	}
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-c.ended:
	case <-time.After(20 * time.Second):
		_ = c.cmd.Process.Kill() // as above
		<-c.ended
	}
	if !c.cmd.ProcessState.Success() {
		return fmt.Errorf("the Collector ended badly (%s)", c.cmd.ProcessState)
	}
	return nil
}
