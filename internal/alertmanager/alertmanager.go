// SPDX-License-Identifier: Apache-2.0

// Package alertmanager sends alerts to Prometheus Alertmanager's v2 API as Prometheus does it.
//
// The caller says which alerts fire, a Sender tells every Alertmanager:
//
//   - What begins or ends is sent at once. All of it is sent again every resend interval, so that an Alertmanager that was
//     restarted knows it again.
//   - A firing alert is sent with an end four resend intervals ahead: it resolves by itself when nobody sends it any more.
//   - A resolved alert is sent with its end until it was taken, and for fifteen minutes.
//   - Alertmanagers are independent: one that hangs or is down holds no other up. What could not be sent is sent again,
//     after a pause that doubles with each failure up to a resend interval.
//   - An alert that an Alertmanager refuses is found among those sent with it, logged, and offered again when it changes or
//     after fifteen minutes.
//
// Whether anybody is notified, how often and when a silence holds is Alertmanager's business.
package alertmanager

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"
)

// Alert is one alert as of now. Its labels identify it.
type Alert struct {
	// Labels and Annotations are read later: the caller does not change these maps any more. Empty values are left out.
	// Names are escaped as Prometheus labels: service.namespace is sent as service_namespace.
	Labels, Annotations map[string]string
	// StartsAt is since when it fires; zero is since it was first set.
	StartsAt time.Time
	// EndsAt is when it ended; zero is not yet.
	EndsAt time.Time
	// GeneratorURL is where a person reads more. Config.ConsoleURL stands in for none.
	GeneratorURL string
}

// A Sender keeps every Alertmanager told. It is a component: Start, then Set as often as there is news, then Shutdown.
type Sender struct {
	cfg       Config
	set       component.TelemetrySettings
	store     *store
	telemetry *telemetry
	endpoints []*endpoint
	client    *http.Client
	cancel    context.CancelFunc
	running   sync.WaitGroup
}

// New makes a Sender of a configuration that is valid.
func New(cfg Config, set component.TelemetrySettings) (*Sender, error) {
	s := &Sender{cfg: cfg, set: set, store: newStore(len(cfg.Endpoints), cfg.MaxAlerts)}
	var err error
	if s.telemetry, err = newTelemetry(set); err != nil {
		return nil, err
	}
	for i, base := range cfg.Endpoints {
		u, err := url.Parse(base)
		if err != nil {
			return nil, err
		}
		s.endpoints = append(s.endpoints, newEndpoint(s, i, u))
	}
	return s, nil
}

// Start begins to send, on goroutines of its own.
func (s *Sender) Start(ctx context.Context, host component.Host) error {
	client, err := s.cfg.ToClient(ctx, host.GetExtensions(), s.set)
	if err != nil {
		return err
	}
	if err := s.telemetry.register(s.store); err != nil {
		return err
	}
	s.client = client
	ctx, s.cancel = context.WithCancel(context.Background())
	for _, e := range s.endpoints {
		s.running.Go(func() { e.run(ctx) })
	}
	return nil
}

// Set says which alerts fire now. What is not among them any more has ended now, or at its EndsAt when it is listed once
// more with one. It does not wait for any Alertmanager; call it before Start or after, from any goroutine, at every change.
// What fires beyond Config.MaxAlerts is not sent; the return value is how many those are.
func (s *Sender) Set(alerts []Alert) (leftOut int) {
	leftOut, began := s.store.set(time.Now(), alerts)
	if began {
		s.set.Logger.Warn("more alerts fire than max_alerts allows: the others are not sent",
			zap.Int("max_alerts", s.cfg.MaxAlerts), zap.Int("left_out", leftOut))
	}
	for _, e := range s.endpoints {
		e.wakeUp()
	}
	return leftOut
}

// Shutdown stops sending. What fires is left firing: it is set again after a restart, or resolves by itself.
func (s *Sender) Shutdown(context.Context) error {
	if s.cancel == nil {
		return nil
	}
	s.cancel()
	s.running.Wait()
	s.client.CloseIdleConnections()
	s.cancel = nil
	return s.telemetry.unregister()
}
