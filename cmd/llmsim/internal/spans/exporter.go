// SPDX-License-Identifier: Apache-2.0

package spans

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/clock"
)

const (
	queueSize  = 8192
	batchSize  = 512
	flushAfter = 200 * time.Millisecond
	// answerWithin is far above what an answer takes, for an endpoint on a machine that stands still for seconds: nothing is sent twice.
	answerWithin = 15 * time.Second
)

// Exporter sends spans to an OTLP/HTTP endpoint. It never holds the simulation
// up: what does not fit its queue is dropped and counted.
type Exporter struct {
	url    string
	clock  clock.Clock
	run    uint64
	client *http.Client
	queue  chan Finished
	done   sync.WaitGroup

	sent, overflowed, failed atomic.Uint64
	lastError                atomic.Pointer[string]
}

// Counts are what became of the spans so far.
type Counts struct {
	Sent uint64 `json:"sent"`
	// DroppedQueueFull and DroppedSendFailed are lost for good: nothing is sent twice.
	DroppedQueueFull  uint64 `json:"dropped_queue_full"`
	DroppedSendFailed uint64 `json:"dropped_send_failed"`
	LastError         string `json:"last_error,omitempty"`
}

// NewExporter checks the endpoint and starts sending; Close ends it. An endpoint
// without a path gets /v1/traces.
func NewExporter(endpoint string, c clock.Clock, run uint64) (*Exporter, error) {
	u, err := url.Parse(endpoint)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("otlp-endpoint: %q is no URL like http://localhost:4318", endpoint)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	e := &Exporter{
		url: u.String(), clock: c, run: run,
		client: &http.Client{Timeout: answerWithin, Transport: &http.Transport{}},
		queue:  make(chan Finished, queueSize),
	}
	e.done.Add(1)
	go e.loop()
	return e, nil
}

// Add queues a span, or drops it when the queue is full. Not after Close.
func (e *Exporter) Add(f Finished) {
	select {
	case e.queue <- f:
	default:
		e.overflowed.Add(1)
	}
}

// AddWait queues a span and waits for room: for simulations that may be held up.
func (e *Exporter) AddWait(f Finished) { e.queue <- f }

// Close sends what is queued and stops; ctx bounds how long that may take.
func (e *Exporter) Close(ctx context.Context) error {
	close(e.queue)
	stopped := make(chan struct{})
	go func() {
		e.done.Wait()
		close(stopped)
	}()
	defer e.client.CloseIdleConnections()
	select {
	case <-stopped:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("otlp: spans were left behind: %w", ctx.Err())
	}
}

// Counts may be called at any time.
func (e *Exporter) Counts() Counts {
	c := Counts{Sent: e.sent.Load(), DroppedQueueFull: e.overflowed.Load(), DroppedSendFailed: e.failed.Load()}
	if s := e.lastError.Load(); s != nil {
		c.LastError = *s
	}
	return c
}

func (e *Exporter) loop() {
	defer e.done.Done()
	tick := time.NewTicker(flushAfter)
	defer tick.Stop()
	batch := make([]Finished, 0, batchSize)
	flush := func() {
		if len(batch) > 0 {
			e.send(batch)
			batch = batch[:0]
		}
	}
	for {
		select {
		case f, ok := <-e.queue:
			if !ok {
				flush()
				return
			}
			if batch = append(batch, f); len(batch) == batchSize {
				flush()
			}
		case <-tick.C:
			flush()
		}
	}
}

func (e *Exporter) send(batch []Finished) {
	if err := e.post(batch); err != nil {
		e.failed.Add(uint64(len(batch)))
		text := err.Error()
		e.lastError.Store(&text)
		return
	}
	e.sent.Add(uint64(len(batch)))
}

func (e *Exporter) post(batch []Finished) error {
	body, err := ptraceotlp.NewExportRequestFromTraces(Build(batch, e.clock, e.run)).MarshalProto()
	if err != nil {
		return err
	}
	resp, err := e.client.Post(e.url, "application/x-protobuf", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20)) // so that the connection is used again
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("POST %s: %s", e.url, resp.Status)
	}
	return nil
}
