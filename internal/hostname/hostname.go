// SPDX-License-Identifier: Apache-2.0

// Package hostname reads the names under which a server is called, for servers that answer to some only.
package hostname

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// Of is the host of host:port, or of a host alone, in lower case, without brackets and without the dot that may end it.
func Of(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// Check says by an error that a setting is no host name.
func Check(name string) error {
	if _, err := netip.ParseAddr(name); err == nil {
		return nil
	}
	if name == "" || strings.ContainsAny(name, "/:* []") {
		return fmt.Errorf("%q is no host name: write e.g. console.example.com, without port", name)
	}
	return nil
}

// All are the names as Of tells them.
func All(names ...string) []string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = Of(name)
	}
	return all
}
