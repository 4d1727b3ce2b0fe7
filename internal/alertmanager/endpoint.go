// SPDX-License-Identifier: Apache-2.0

package alertmanager

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"
)

const (
	batchSize    = 64          // alerts a request, as Prometheus has it
	firstBackOff = time.Second // doubles up to the resend interval
	maxAnswer    = 512         // bytes of an answer that a log line may show
)

// endpoint keeps one Alertmanager told.
type endpoint struct {
	*Sender
	index   int
	name    string // the URL without its password
	url     string
	wake    chan struct{}
	backOff time.Duration // 0 while it answers
}

func newEndpoint(s *Sender, index int, base *url.URL) *endpoint {
	return &endpoint{Sender: s, index: index, name: base.Redacted(), url: base.JoinPath(path).String(), wake: make(chan struct{}, 1)}
}

// wakeUp never blocks: one call that is not yet answered is enough.
func (e *endpoint) wakeUp() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

func (e *endpoint) run(ctx context.Context) {
	repeat := time.NewTicker(e.cfg.ResendInterval)
	defer repeat.Stop()
	retry := time.NewTimer(0)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-repeat.C:
			e.store.repeat(time.Now(), e.index)
		case <-e.wake:
		case <-retry.C:
			e.sendDue(ctx, retry)
			continue
		}
		if e.backOff == 0 {
			e.sendDue(ctx, retry)
		}
	}
}

// sendDue sends all there is to send, up to the first failure.
func (e *endpoint) sendDue(ctx context.Context, retry *time.Timer) {
	for items := e.store.due(e.index); len(items) > 0; items = e.store.due(e.index) {
		for len(items) > 0 {
			n := min(len(items), batchSize)
			batch := e.store.current(items[:n:n])
			items = items[n:]
			if err := e.send(ctx, batch); err != nil {
				if ctx.Err() == nil {
					e.failed(err, retry)
				}
				return
			}
		}
	}
	if e.backOff > 0 {
		e.backOff = 0
		e.set.Logger.Info("the Alertmanager takes alerts again", zap.String("endpoint", e.name))
	}
}

// failed sets the time of the next try.
func (e *endpoint) failed(err error, retry *time.Timer) {
	limit := e.cfg.ResendInterval
	if e.backOff == 0 {
		e.set.Logger.Warn("the Alertmanager does not take alerts; they are sent again until it does", zap.String("endpoint", e.name), zap.Error(err))
		e.backOff = min(firstBackOff, limit)
	} else {
		e.backOff = min(2*e.backOff, limit)
	}
	retry.Reset(e.backOff)
}

// send sends a batch; the error is worth another try. A batch that is refused is cut in halves until the alerts are
// found that are refused by themselves.
func (e *endpoint) send(ctx context.Context, batch []item) error {
	if len(batch) == 0 {
		return nil
	}
	err := e.post(ctx, batch)
	var answer answerError
	switch {
	case err == nil:
		e.store.taken(e.index, batch)
		e.telemetry.sent(ctx, e.name, len(batch))
		return nil
	case !errors.As(err, &answer):
		if ctx.Err() == nil {
			e.telemetry.failed(ctx, e.name, "unreachable", len(batch))
		}
		return err
	case !answer.refusesContent():
		e.telemetry.failed(ctx, e.name, answer.reason(), len(batch))
		return err
	case len(batch) > 1:
		half := len(batch) / 2
		if err := e.send(ctx, batch[:half]); err != nil {
			return err
		}
		return e.send(ctx, batch[half:])
	}
	e.telemetry.failed(ctx, e.name, answer.reason(), 1)
	if e.store.refused(time.Now(), e.index, batch[0]) {
		e.set.Logger.Error("the Alertmanager refuses an alert", zap.String("endpoint", e.name),
			zap.String("labels", text(batch[0].Labels)), zap.Error(err))
	}
	return nil
}

func (e *endpoint) post(ctx context.Context, batch []item) error {
	body, err := e.cfg.encode(batch, time.Now())
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := e.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)) // only for the message
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	if resp.StatusCode/100 == 2 {
		return nil
	}
	return answerError{status: resp.StatusCode, text: strings.TrimSpace(string(said))}
}

// answerError is an answer that is no success.
type answerError struct {
	status int
	text   string
}

func (a answerError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("answered %d %s: %s", a.status, http.StatusText(a.status), a.text))
}

func (a answerError) reason() string { return strconv.Itoa(a.status) }

// refusesContent tells what is wrong with the alerts from what is wrong with the way to Alertmanager: a password, a path, a
// proxy in between.
func (a answerError) refusesContent() bool {
	switch a.status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	}
	return false
}
