// SPDX-License-Identifier: Apache-2.0

package tenantheadersextension

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/extension/extensionauth"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/otelcol-llm/otelcol-llm/internal/tenant"
)

// headers names the tenant in what exporters send.
type headers struct {
	component.StartFunc
	component.ShutdownFunc

	header, key string // the name in HTTP and in gRPC, which knows lower case only
	from        string
	otherwise   string
}

var (
	_ extensionauth.HTTPClient = (*headers)(nil)
	_ extensionauth.GRPCClient = (*headers)(nil)
)

func newHeaders(cfg *Config) *headers {
	return &headers{
		header: http.CanonicalHeaderKey(cfg.Header), key: strings.ToLower(cfg.Header),
		from: cfg.FromMetadata, otherwise: cfg.DefaultTenant,
	}
}

// tenant is whose data is sent under a context. An error is permanent: sending it again would not make it known, and sending
// it without a tenant would give it to whoever the backend takes for nobody.
func (h *headers) tenant(ctx context.Context) (string, error) {
	values := client.FromContext(ctx).Metadata.Get(h.from)
	switch {
	case len(values) == 0 && h.otherwise != "":
		return h.otherwise, nil
	case len(values) == 0:
		return "", consumererror.NewPermanent(fmt.Errorf("metadata %q names no tenant: put tenant_routing before the exporter, and "+
			"nothing between them that drops metadata, such as the batch processor without metadata_keys", h.from))
	case len(values) > 1:
		return "", consumererror.NewPermanent(fmt.Errorf("metadata %q names %d tenants, want one", h.from, len(values)))
	case !tenant.Valid(values[0]):
		return "", consumererror.NewPermanent(fmt.Errorf("metadata %q: %q is no tenant id", h.from, values[0]))
	}
	return values[0], nil
}

// RoundTripper sets the header of each HTTP request.
func (h *headers) RoundTripper(base http.RoundTripper) (http.RoundTripper, error) {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		name, err := h.tenant(req.Context())
		if err != nil {
			if req.Body != nil {
				_ = req.Body.Close() // a RoundTripper has to, even on errors
			}
			return nil, err
		}
		req = req.Clone(req.Context()) // a RoundTripper must not change what it was given
		req.Header[h.header] = []string{name}
		return base.RoundTrip(req)
	}), nil
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// PerRPCCredentials sets the metadata of each gRPC call.
func (h *headers) PerRPCCredentials() (credentials.PerRPCCredentials, error) { return perRPC{h}, nil }

type perRPC struct{ *headers }

// GetRequestMetadata is the tenant of a call. What it returns gRPC adds to what the exporter sends by itself: where that names a
// tenant, too, the backend would hear of two, and may take either.
func (p perRPC) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	if md, ok := metadata.FromOutgoingContext(ctx); ok && len(md.Get(p.key)) > 0 {
		return nil, consumererror.NewPermanent(fmt.Errorf("the exporter's own headers name %s, too, and gRPC would send both: remove it there", p.header))
	}
	name, err := p.tenant(ctx)
	if err != nil {
		return nil, err
	}
	return map[string]string{p.key: name}, nil
}

// RequireTransportSecurity is false: the tenant's id is no secret.
func (perRPC) RequireTransportSecurity() bool { return false }
