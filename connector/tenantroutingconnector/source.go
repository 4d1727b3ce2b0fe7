// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"errors"
	"fmt"
	"strings"

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
	request []requestKey
	data    *tenant.Resolver // nil when only requests are asked
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
