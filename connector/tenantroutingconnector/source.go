// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"errors"
	"fmt"
	"strings"

	"go.opentelemetry.io/collector/client"

	"github.com/otelcol-llm/otelcol-llm/internal/labels"
	"github.com/otelcol-llm/otelcol-llm/internal/tenant"
)

// What keys of tenant_from begin with that are of the request, and not of its data.
const (
	ofAuth     = "auth:"
	ofMetadata = "metadata:"
)

// source says where the name of a tenant is found.
type source struct {
	// request keys come first: what they say holds for all that a client sends at once.
	request  []requestKey
	trusting bool             // headers count, whoever sent them
	data     *tenant.Resolver // nil when only requests are asked
}

type requestKey struct {
	key      string
	metadata bool // a header, else what an authenticator found out
}

func newSource(keys []string) (*source, error) {
	s := &source{}
	var errs []error
	var ofData []string
	for i, key := range keys {
		name, auth := strings.CutPrefix(key, ofAuth)
		name, header := strings.CutPrefix(name, ofMetadata)
		switch {
		case key == labels.Tenant:
			errs = append(errs, fmt.Errorf("[%d]: %q is what an earlier hop has set: use trust_tenant instead", i, key))
		case !auth && !header:
			ofData = append(ofData, key)
		case name == "" || auth && header:
			errs = append(errs, fmt.Errorf("[%d]: %q names no key", i, key))
		case len(ofData) > 0:
			errs = append(errs, fmt.Errorf("[%d]: %q is of the request, and must stand before attributes of its data", i, key))
		default:
			s.request = append(s.request, requestKey{name, header})
		}
	}
	if len(ofData) == 0 && len(s.request) > 0 {
		return s, errors.Join(errs...)
	}
	data, err := tenant.NewResolver(ofData)
	if err != nil && len(s.request) > 0 {
		err = fmt.Errorf("after keys of the request: %w", err)
	}
	s.data = data
	return s, errors.Join(append(errs, err)...)
}

// ofRequest is the tenant of all that a request brings, "" where the request does not tell. A header is a claim of the client:
// it counts where an authenticator says who the client is, or headers are trusted. unheard is the key of one that does not count.
func (s *source) ofRequest(info client.Info) (name, unheard string) {
	for _, k := range s.request {
		switch {
		case k.metadata:
			values := info.Metadata.Get(k.key)
			if len(values) != 1 || values[0] == "" {
				continue
			}
			if info.Auth != nil || s.trusting {
				return values[0], ""
			}
			unheard = k.key
		case info.Auth != nil:
			if name := text(info.Auth.GetAttribute(k.key)); name != "" {
				return name, ""
			}
		}
	}
	return "", unheard
}

// text is what an authenticator says of a client, where that is one text.
func text(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case []string:
		if len(v) == 1 {
			return v[0]
		}
	}
	return ""
}
