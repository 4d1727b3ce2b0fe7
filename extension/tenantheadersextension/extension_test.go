// SPDX-License-Identifier: Apache-2.0

package tenantheadersextension

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensionauth"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	own "github.com/otelcol-llm/otelcol-llm/extension/tenantheadersextension/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/lifecycletest"
)

func made(t testing.TB, cfg component.Config) extension.Extension {
	t.Helper()
	e, err := NewFactory().Create(t.Context(), extensiontest.NewNopSettings(own.Type), cfg)
	require.NoError(t, err)
	return e
}

// as is a context in which the metadata names tenants.
func as(ctx context.Context, tenants ...string) context.Context {
	return client.NewContext(ctx, client.Info{Metadata: client.NewMetadata(map[string][]string{"X-Scope-OrgID": tenants})})
}

// answer is what a backend heard, or the error when nothing was sent.
type answer struct {
	tenants []string
	err     error
}

// overHTTP sends a request, and is what the backend heard.
func overHTTP(ctx context.Context, t *testing.T, cfg *Config) (heard answer) {
	t.Helper()
	backend := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		heard.tenants = req.Header.Values(cfg.Header)
	}))
	defer backend.Close()
	transport, err := made(t, cfg).(extensionauth.HTTPClient).RoundTripper(http.DefaultTransport)
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, backend.URL, strings.NewReader("body"))
	require.NoError(t, err)
	req.Header.Set(cfg.Header, "static")
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return answer{err: err}
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, "static", req.Header.Get(cfg.Header), "a request is not its transport's to change")
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	return heard
}

// overGRPC makes a call, and is what the backend heard.
func overGRPC(ctx context.Context, t *testing.T, cfg *Config) (heard answer) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	backend := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		heard.tenants = md.Get(cfg.Header)
		return next(ctx, req)
	}))
	healthpb.RegisterHealthServer(backend, health.NewServer())
	go func() { _ = backend.Serve(listener) }()
	defer backend.Stop()
	creds, err := made(t, cfg).(extensionauth.GRPCClient).PerRPCCredentials()
	require.NoError(t, err)
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithPerRPCCredentials(creds))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	if _, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{}); err != nil {
		return answer{err: err}
	}
	return heard
}

// Guarantees: the backend hears of exactly the tenant that the metadata names; where it names none, or several, or something
// else, nothing is sent, and it is not tried again.
func TestABackendHearsOfTheTenantAndOfNoOther(t *testing.T) {
	f := func(ctx context.Context, cfg *Config, want string) {
		t.Helper()
		http, grpc := overHTTP(ctx, t, cfg), overGRPC(ctx, t, cfg)
		if want != "" {
			assert.Equal(t, answer{tenants: []string{want}}, http)
			assert.Equal(t, answer{tenants: []string{want}}, grpc)
			return
		}
		assert.True(t, consumererror.IsPermanent(http.err), http.err)
		assert.Equal(t, codes.Unauthenticated, status.Code(grpc.err), grpc.err) // which exporters take for final
	}
	defaults := createDefaultConfig().(*Config)
	f(as(t.Context(), "acme"), defaults, "acme")
	f(as(t.Context(), "!-_.*'()"), defaults, "!-_.*'()")
	f(t.Context(), defaults, "")
	f(as(t.Context(), "a", "b"), defaults, "")
	f(as(t.Context(), "a|b"), defaults, "")
	f(as(t.Context(), "a\r\nX-Evil: 1"), defaults, "")
	f(t.Context(), &Config{Header: "X-Tenant", FromMetadata: "x-scope-orgid", DefaultTenant: "nobody"}, "nobody")
	f(as(t.Context(), "acme"), &Config{Header: "X-Tenant", FromMetadata: "x-scope-orgid", DefaultTenant: "nobody"}, "acme")
	f(as(t.Context(), "a/b"), &Config{Header: "X-Tenant", FromMetadata: "x-scope-orgid", DefaultTenant: "nobody"}, "")
}

// Guarantees: an exporter whose own headers name a tenant cannot make a backend hear of two: over HTTP its header is replaced, over
// gRPC, which could only add one, nothing is sent.
func TestAStaticHeaderNeverStandsBesideTheTenant(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	ctx := as(t.Context(), "acme")
	assert.Equal(t, answer{tenants: []string{"acme"}}, overHTTP(ctx, t, cfg), "overHTTP sends one")
	heard := overGRPC(metadata.AppendToOutgoingContext(ctx, "x-scope-orgid", "static"), t, cfg)
	assert.Empty(t, heard.tenants)
	assert.Equal(t, codes.Unauthenticated, status.Code(heard.err), heard.err)
	assert.ErrorContains(t, heard.err, "the exporter's own headers name X-Scope-Orgid, too, and gRPC would send both: remove it there")
	assert.Equal(t, answer{tenants: []string{"acme"}}, overGRPC(metadata.AppendToOutgoingContext(ctx, "x-other", "static"), t, cfg))
}

func TestLifecycle(t *testing.T) {
	lifecycletest.Test(t, componenttest.NewNopHost(), func(t testing.TB) extension.Extension { return made(t, createDefaultConfig()) }, nil)
}

func BenchmarkHeader(b *testing.B) {
	creds, err := made(b, createDefaultConfig()).(extensionauth.GRPCClient).PerRPCCredentials()
	require.NoError(b, err)
	ctx := as(b.Context(), "acme")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := creds.GetRequestMetadata(ctx); err != nil {
			b.Fatal(err)
		}
	}
}
