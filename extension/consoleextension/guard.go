// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/otelcol-llm/otelcol-llm/internal/hostname"
)

// headers are on every answer. The page runs its own files only, is shown in no frame, and tells nobody where it was.
var headers = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"Referrer-Policy":              "no-referrer",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Permissions-Policy":           "camera=(), geolocation=(), microphone=()",
}

// guard lets through what a person's browser asks the console itself, and nothing that another web page asks of it:
//
//   - The Host must be localhost, an address, the host of endpoint or one of allowed_hosts. The name of a page that had
//     itself resolved to this address (DNS rebinding) is none of these; an address cannot be rebound.
//   - An Origin, where there is one, must be the Host.
//   - Sec-Fetch-Site, where there is one, must be same-origin or none (typed, bookmarked), except for opening the page by a
//     link.
type guard struct {
	names     []string
	next      http.Handler
	telemetry *telemetry
}

func newGuard(cfg *Config, next http.Handler, t *telemetry) *guard {
	return &guard{names: hostname.All(append(cfg.AllowedHosts, "localhost", cfg.NetAddr.Endpoint)...), next: next, telemetry: t}
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range headers {
		w.Header().Set(name, value)
	}
	switch {
	case !g.known(r.Host):
		g.telemetry.refuse(r.Context(), "host")
		http.Error(w, "This host name is not known to the console: add it to allowed_hosts, or use localhost.", http.StatusForbidden)
	case !sameOrigin(r):
		g.telemetry.refuse(r.Context(), "origin")
		http.Error(w, "Only the console's own page may ask this.", http.StatusForbidden)
	default:
		g.next.ServeHTTP(w, r)
	}
}

// known is whether a Host header names the console.
func (g *guard) known(host string) bool {
	name := hostname.Of(host)
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	return name != "" && slices.Contains(g.names, name)
}

func sameOrigin(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
			return false
		}
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return true
	default: // a link from elsewhere opens the page, and nothing but it
		return r.Method == http.MethodGet && r.URL.Path == "/" && r.Header.Get("Sec-Fetch-Mode") == "navigate"
	}
}
