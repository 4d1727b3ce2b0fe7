// SPDX-License-Identifier: Apache-2.0

package gpuguardextension

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/internal/hostname"
)

// AdminConfig is an HTTP server for people who see and stop the guard.
type AdminConfig struct {
	// ServerConfig says where it is: endpoint, and tls, auth and the other settings of an HTTP server of the Collector. Without an
	// endpoint there is none.
	confighttp.ServerConfig `mapstructure:",squash"`
	// Token is what a request must bring: Authorization: Bearer TOKEN. It is required unless auth is set.
	Token configopaque.String `mapstructure:"token"`
	// AllowedHosts are the names under which it may be asked, besides localhost, addresses and the host of endpoint.
	AllowedHosts []string `mapstructure:"allowed_hosts"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// minToken keeps a token from being guessed.
const minToken = 16

func (c *AdminConfig) on() bool { return c.NetAddr.Endpoint != "" }

func (c *AdminConfig) check() (errs []error) {
	if !c.on() {
		if c.Token != "" {
			errs = append(errs, errors.New("admin::endpoint: is empty, but there is a token: write e.g. localhost:8687"))
		}
		return errs
	}
	switch {
	case c.Token == "" && !c.Auth.HasValue():
		errs = append(errs, errors.New("admin: nobody would be asked who they are: set token, e.g. ${env:GPU_GUARD_TOKEN}, or auth"))
	case c.Token != "" && c.Auth.HasValue():
		errs = append(errs, errors.New("admin: token and auth are both set: keep one"))
	case c.Token != "" && len(c.Token) < minToken:
		errs = append(errs, fmt.Errorf("admin::token: must have at least %d characters", minToken))
	}
	host, _, err := net.SplitHostPort(c.NetAddr.Endpoint)
	if err != nil && !strings.HasPrefix(string(c.NetAddr.Transport), "unix") {
		errs = append(errs, fmt.Errorf("admin::endpoint: %q is no host:port, e.g. localhost:8687", c.NetAddr.Endpoint))
	} else if !loopback(host) && !c.TLS.HasValue() && err == nil {
		errs = append(errs, fmt.Errorf("admin::tls: is required, since %s can be reached from elsewhere; or listen on localhost", c.NetAddr.Endpoint))
	}
	for i, name := range c.AllowedHosts {
		if err := hostname.Check(name); err != nil {
			errs = append(errs, fmt.Errorf("admin::allowed_hosts[%d]: %w", i, err))
		}
	}
	if c.CORS.HasValue() {
		errs = append(errs, errors.New("admin::cors: no page may ask the guard: leave it out"))
	}
	return errs
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback()
}

// admin serves people.
type admin struct {
	server   *http.Server // nil when not started
	listener net.Listener
	serving  sync.WaitGroup
}

func (e *gpuGuard) startAdmin(ctx context.Context, host component.Host) error {
	c := &e.cfg.Admin
	if !c.on() {
		return nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /state", e.serveState)
	mux.HandleFunc("POST /pause", e.servePause(true))
	mux.HandleFunc("POST /resume", e.servePause(false))
	server, err := c.ToServer(ctx, host.GetExtensions(), e.set.TelemetrySettings, mux)
	if err != nil {
		return err
	}
	server.MaxHeaderBytes = 64 << 10
	server.Handler = e.admit(server.Handler)
	listener, err := c.ToListener(ctx)
	if err != nil {
		return err
	}
	e.admin.server, e.admin.listener = server, listener
	e.log.Info("the guard is seen and stopped by its admin endpoint", zap.Stringer("endpoint", listener.Addr()))
	e.admin.serving.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(err))
		}
	})
	return nil
}

// drain is how long answers that are under way may take at a shutdown.
const drain = time.Second

func (a *admin) shutdown(ctx context.Context) error {
	if a.server == nil {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, drain)
	defer stop()
	err := a.server.Shutdown(ctx)
	if err != nil {
		err = a.server.Close()
	}
	a.serving.Wait()
	a.server = nil
	return err
}

// admit lets in who has the token, and no page of a browser, whatever name or address that was led here by.
func (e *gpuGuard) admit(next http.Handler) http.Handler {
	c := &e.cfg.Admin
	names := append(hostname.All(c.AllowedHosts...), "localhost", hostname.Of(c.NetAddr.Endpoint))
	want := sha256.Sum256([]byte(c.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		name := hostname.Of(r.Host)
		_, notAddress := netip.ParseAddr(name)
		switch {
		case notAddress != nil && !slices.Contains(names, name):
			e.turnAway(w, r, "host", http.StatusForbidden, "this host name is not known: add it to admin::allowed_hosts, or use localhost")
		case r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "":
			e.turnAway(w, r, "origin", http.StatusForbidden, "pages of browsers may not ask the guard")
		case c.Token != "" && !bears(r, want):
			w.Header().Set("WWW-Authenticate", "Bearer")
			e.turnAway(w, r, "token", http.StatusUnauthorized, "this takes the header Authorization: Bearer and the token of admin::token")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// bears compares in a time that does not tell how much of a token was right, nor how long it is.
func bears(r *http.Request, want [sha256.Size]byte) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	have := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(have[:], want[:]) == 1 && strings.EqualFold(scheme, "Bearer")
}

func (e *gpuGuard) turnAway(w http.ResponseWriter, r *http.Request, reason string, status int, message string) {
	e.own.turnedAway(r.Context(), reason)
	http.Error(w, message, status)
}

func (e *gpuGuard) servePause(paused bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := e.pause(paused); err != nil {
			// It is so, but a restart would undo it.
			http.Error(w, "done, but it will not outlive a restart: "+err.Error(), http.StatusInternalServerError)
			return
		}
		e.serveState(w, r)
	}
}

func (e *gpuGuard) serveState(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(e.view()) // nobody is left to tell
}
