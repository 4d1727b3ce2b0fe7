// SPDX-License-Identifier: Apache-2.0

package tenantheadersextension

import (
	"bytes"
	"context"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/confighttp"
)

// counting is a listener that counts the bytes that come in.
type counting struct {
	net.Listener
	read atomic.Int64
}

func (c *counting) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	return counted{conn, &c.read}, err
}

type counted struct {
	net.Conn
	read *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.read.Add(int64(n))
	return n, err
}

// Scenario: a backend that speaks HTTP/2 over TLS takes large requests of one tenant and reads none of them. Guarantees: with
// force_attempt_http2: false, as README.md recommends, what others send arrives; with one connection for all, whose window is full, it
// does not.
func TestOneTenantsUnreadRequestsHoldUpOthersOverHTTP2Only(t *testing.T) {
	const requests, size, window = 20, 100_000, 1 << 20
	f := func(http2 bool, protocol string, arrive int) {
		t.Helper()
		var mu sync.Mutex
		protocols := map[string]int{}
		hanging, end := make(chan struct{}, 6), make(chan struct{})
		backend := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
			if req.Header.Get("X-Scope-OrgID") == "hangs" {
				hanging <- struct{}{}
				<-end
				return
			}
			if n, _ := io.Copy(io.Discard, req.Body); n == size {
				mu.Lock()
				protocols[req.Proto]++
				mu.Unlock()
			}
		}))
		backend.EnableHTTP2 = true
		backend.Config.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerConnection: window, MaxReceiveBufferPerStream: window}
		wire := &counting{Listener: backend.Listener}
		backend.Listener = wire
		backend.StartTLS()
		id := component.MustNewID("tenant_headers")
		cfg := confighttp.NewDefaultClientConfig()
		cfg.ForceAttemptHTTP2 = http2
		cfg.Auth.GetOrInsertDefault().AuthenticatorID = id
		cfg.TLS.CAFile = filepath.Join(t.TempDir(), "ca.pem")
		ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: backend.Certificate().Raw})
		require.NoError(t, os.WriteFile(cfg.TLS.CAFile, ca, 0o600))
		exporter, err := cfg.ToClient(t.Context(), map[component.ID]component.Component{id: made(t, createDefaultConfig())}, componenttest.NewNopTelemetrySettings())
		require.NoError(t, err)
		send := func(ctx context.Context, body io.Reader) {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, backend.URL, body)
			require.NoError(t, err)
			if resp, err := exporter.Do(req); err == nil {
				_ = resp.Body.Close()
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		var sending sync.WaitGroup
		for range cap(hanging) {
			sending.Go(func() { send(as(ctx, "hangs"), bytes.NewReader(make([]byte, 400_000))) })
		}
		for range cap(hanging) {
			<-hanging
		}
		brief, done := context.WithCancel(ctx)
		if http2 { // when as much is written as the backend takes, what is left of the window is less than one of the requests that follow
			require.Eventually(t, func() bool { return wire.read.Load() >= window }, time.Minute, time.Millisecond)
			time.AfterFunc(time.Second, done) // they would wait for ever
		}
		var good sync.WaitGroup
		for range requests {
			good.Go(func() { send(as(brief, "good"), strings.NewReader(strings.Repeat("x", size))) })
		}
		good.Wait()
		done()
		cancel()
		sending.Wait()
		close(end)
		exporter.CloseIdleConnections()
		backend.Close()
		if arrive > 0 {
			assert.Equal(t, map[string]int{protocol: arrive}, protocols)
		} else {
			assert.Empty(t, protocols)
		}
	}
	f(false, "HTTP/1.1", requests)
	f(true, "HTTP/2.0", 0)
}
