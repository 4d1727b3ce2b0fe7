// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/extension"
	"go.uber.org/zap"
)

// console serves the page and passes its queries on.
type console struct {
	cfg       *Config
	set       component.TelemetrySettings
	telemetry *telemetry

	server   *http.Server // nil when not started
	listener net.Listener
	client   *http.Client
	serving  sync.WaitGroup
}

func newConsole(set extension.Settings, cfg *Config) (*console, error) {
	t, err := newTelemetry(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	return &console{cfg: cfg, set: set.TelemetrySettings, telemetry: t}, nil
}

// Start listens. Whether query_url answers does not matter yet: the page says so when it does not.
func (c *console) Start(ctx context.Context, host component.Host) error {
	handler, err := c.handler(ctx, host)
	if err != nil {
		return err
	}
	server, err := c.cfg.ToServer(ctx, host.GetExtensions(), c.set, handler)
	if err != nil {
		return err
	}
	server.MaxHeaderBytes = 64 << 10
	// Outermost, so that what is refused reaches nothing else and every answer carries the headers.
	server.Handler = newGuard(c.cfg, server.Handler, c.telemetry)
	listener, err := c.cfg.ToListener(ctx)
	if err != nil {
		return err
	}
	c.server, c.listener = server, listener
	c.announce()
	c.serving.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(err))
		}
	})
	return nil
}

// handler is what the console answers: its files, its configuration for the page, and queries.
func (c *console) handler(ctx context.Context, host component.Host) (http.Handler, error) {
	client, err := c.cfg.Query.ToClient(ctx, host.GetExtensions(), c.set)
	if err != nil {
		return nil, err
	}
	c.client = client
	mux := http.NewServeMux()
	if err := newProxy(c.cfg, client, c.telemetry).register(mux); err != nil {
		return nil, err
	}
	files, err := newFiles()
	if err != nil {
		return nil, err
	}
	mux.Handle("GET /", files)
	mux.Handle("GET /config.json", pageConfig(c.cfg))
	return mux, nil
}

// announce says where the page is, and who can read it.
func (c *console) announce() {
	scheme := "http"
	if c.cfg.TLS.HasValue() {
		scheme = "https"
	}
	at := c.listener.Addr().String()
	c.set.Logger.Info("console is at "+scheme+"://"+at, zap.String("query_url", c.cfg.QueryURL))
	if a, err := netip.ParseAddrPort(at); err == nil && !a.Addr().IsLoopback() && !c.cfg.Auth.HasValue() {
		c.set.Logger.Warn("the console has no auth: whoever reaches it reads all metrics of query_url", zap.String("endpoint", at))
	}
}

// drain is how long answers that are under way may take at shutdown: nobody needs them as much as the Collector its end.
const drain = time.Second

// Shutdown ends the page. It is safe before Start and twice.
func (c *console) Shutdown(ctx context.Context) error {
	if c.server == nil {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, drain)
	defer stop()
	err := c.server.Shutdown(ctx)
	if err != nil {
		err = c.server.Close()
	}
	c.serving.Wait()
	c.client.CloseIdleConnections()
	c.server = nil
	return err
}
