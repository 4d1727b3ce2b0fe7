// SPDX-License-Identifier: Apache-2.0

package queryapi

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/otelcol-llm/otelcol-llm/internal/hostname"
)

// Guard keeps pages of other web sites from reading what a browser on this machine can reach.
type Guard struct {
	// Hosts are the names under which the server may be called; nil is any. A site that lets its own name point to
	// 127.0.0.1 (DNS rebinding) calls by another.
	Hosts []string
	// OtherOrigins lets the requests of other origins through: CORS then says which of them may read the answers.
	OtherOrigins bool
}

// Hosts are the names for a server that listens at an endpoint: a server on this machine only is called by few, any other by
// whatever its network calls it, unless allowed names them.
func Hosts(endpoint string, allowed []string) []string {
	if Local(endpoint) {
		return append([]string{"localhost", "127.0.0.1", "::1", hostname.Of(endpoint)}, hostname.All(allowed...)...)
	}
	if len(allowed) == 0 {
		return nil
	}
	return hostname.All(allowed...)
}

// Local says whether a server that listens at an endpoint is reached from this machine only.
func Local(endpoint string) bool {
	host := hostname.Of(endpoint)
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback() || host == "localhost"
}

// Wrap guards a handler, and forbids browsers to do anything with an answer but read it.
func (g Guard) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		switch {
		case g.Hosts != nil && !slices.Contains(g.Hosts, hostname.Of(r.Host)):
			refuse(w, http.StatusForbidden, "forbidden", fmt.Sprintf("host %q is not one of this server: add it to allowed_hosts", r.Host))
		case !g.OtherOrigins && otherOrigin(r):
			refuse(w, http.StatusForbidden, "forbidden", fmt.Sprintf("origin %q is not this server: add it to cors::allowed_origins", r.Header.Get("Origin")))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// otherOrigin says whether a browser sends this for a page that is not from here. What is no browser sends neither header.
func otherOrigin(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return false
	case "":
		origin := r.Header.Get("Origin")
		_, host, _ := strings.Cut(origin, "://")
		return origin != "" && !strings.EqualFold(host, r.Host)
	}
	return true
}
