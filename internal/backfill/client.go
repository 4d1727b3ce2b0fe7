// SPDX-License-Identifier: Apache-2.0

package backfill

import (
	"fmt"
	"io"
	"net/http"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
)

// maxBody bounds an answer.
const maxBody = 64 << 20

// NewAPI is the API of a Prometheus, Mimir, Thanos or what else speaks it, at an address with or without a path. TLS,
// authentication, headers of a tenant and timeouts are the client's, e.g. of confighttp. An answer of more than 64 MiB is
// an error.
func NewAPI(address string, client *http.Client) (API, error) {
	bounded := *client
	if bounded.Transport == nil {
		bounded.Transport = http.DefaultTransport
	}
	bounded.Transport = &limiter{next: bounded.Transport, max: maxBody}
	c, err := api.NewClient(api.Config{Address: address, Client: &bounded})
	if err != nil {
		return nil, fmt.Errorf("address of a Prometheus API: %w", err)
	}
	return v1.NewAPI(c), nil
}

// limiter ends a body that is too long with an error. The library reads all of it.
type limiter struct {
	next http.RoundTripper
	max  int64
}

func (l *limiter) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := l.next.RoundTrip(req)
	if err == nil {
		resp.Body = &limitedBody{ReadCloser: resp.Body, left: l.max, max: l.max}
	}
	return resp, err
}

// CloseIdleConnections lets those of the client go: api.Client has it, too.
func (l *limiter) CloseIdleConnections() {
	if c, ok := l.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

type limitedBody struct {
	io.ReadCloser
	left, max int64
}

func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("the answer is longer than %d bytes: ask for fewer steps or groups", b.max)
	}
	return n, err
}
