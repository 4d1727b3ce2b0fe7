// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Scenario: a web page elsewhere has its name resolved to the console's address (DNS rebinding). Guarantees: it is told
// nothing, neither by the page nor by the API.
func TestAnUnknownHostIsRefused(t *testing.T) {
	c := start(t, nil, answering(`{"status":"success"}`), func(cfg *Config) { cfg.AllowedHosts = []string{"slo.example.com"} })
	f := func(host string, want int) {
		t.Helper()
		for _, path := range []string{"/", "/config.json", "/api/v1/query?query=up"} {
			assert.Equal(t, want, c.get(t, path, func(r *http.Request) { r.Host = host }).status, "%s%s", host, path)
		}
	}
	f("localhost:8686", http.StatusOK)
	f("LOCALHOST", http.StatusOK)
	f("localhost.:8686", http.StatusOK)
	f("127.0.0.1:8686", http.StatusOK)
	f("192.0.2.7", http.StatusOK) // an address cannot be rebound
	f("[::1]:8686", http.StatusOK)
	f("[::1]", http.StatusOK)
	f("slo.example.com", http.StatusOK)
	f("SLO.example.com:443", http.StatusOK)
	f("evil.example", http.StatusForbidden)
	f("evil.example:8686", http.StatusForbidden)
	f("localhost.evil.example", http.StatusForbidden)
	f("127.0.0.1.evil.example", http.StatusForbidden)
	f("x.slo.example.com", http.StatusForbidden)
}

func TestOnlyTheConsolesOwnPageAsks(t *testing.T) {
	c := start(t, nil, answering(`{"status":"success"}`), nil)
	f := func(path, origin, site, mode string, want int) {
		t.Helper()
		got := c.get(t, path, func(r *http.Request) {
			r.Host = "localhost:8686"
			for name, value := range map[string]string{"Origin": origin, "Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode} {
				if value != "" {
					r.Header.Set(name, value)
				}
			}
		})
		assert.Equal(t, want, got.status, "%s from %q, %q, %q", path, origin, site, mode)
		assert.Empty(t, got.header.Get("Access-Control-Allow-Origin"))
	}
	const query = "/api/v1/query?query=up"
	f(query, "", "", "", http.StatusOK) // no browser
	f(query, "http://localhost:8686", "same-origin", "cors", http.StatusOK)
	f(query, "https://localhost:8686", "", "", http.StatusOK) // behind something that ends TLS
	f(query, "http://localhost:3000", "", "", http.StatusForbidden)
	f(query, "http://evil.example", "", "", http.StatusForbidden)
	f(query, "null", "", "", http.StatusForbidden)
	f(query, "", "cross-site", "no-cors", http.StatusForbidden) // <script src>, <img src>
	f(query, "", "same-site", "no-cors", http.StatusForbidden)  // another port of localhost
	f(query, "", "cross-site", "navigate", http.StatusForbidden)
	f("/config.json", "", "cross-site", "no-cors", http.StatusForbidden)
	f("/", "", "none", "navigate", http.StatusOK)
	f("/", "", "cross-site", "navigate", http.StatusOK) // a link in a chat
	f("/?view=heatmap", "", "cross-site", "navigate", http.StatusOK)
	f("/", "", "cross-site", "no-cors", http.StatusForbidden)
}

func TestEveryAnswerSaysWhatABrowserMayDoWithIt(t *testing.T) {
	c := start(t, nil, answering(`{"status":"success"}`), nil)
	for _, path := range []string{"/", "/config.json", "/api/v1/query?query=up", "/nothing"} {
		for _, host := range []string{"localhost", "evil.example"} {
			got := c.get(t, path, func(r *http.Request) { r.Host = host })
			policy := got.header.Get("Content-Security-Policy")
			assert.Contains(t, policy, "default-src 'none'")
			assert.Contains(t, policy, "frame-ancestors 'none'")
			assert.NotContains(t, policy, "unsafe")
			assert.Equal(t, "nosniff", got.header.Get("X-Content-Type-Options"))
			assert.Equal(t, "DENY", got.header.Get("X-Frame-Options"))
			assert.Equal(t, "no-referrer", got.header.Get("Referrer-Policy"))
		}
	}
}
