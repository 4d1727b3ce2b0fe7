// SPDX-License-Identifier: Apache-2.0

package tenantcheckconverter

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// defaultKey is the client metadata that holds the tenant where nothing else is configured.
const defaultKey = "x-scope-orgid"

// misnamed says what a tenant_routing connector names that is not there, and would be found out at the start, or never.
func (c config) misnamed() error {
	var errs []error
	connectors := mapAt(c, "connectors")
	for _, id := range slices.Sorted(maps.Keys(connectors)) {
		if typeOf(id) != connectorType || !c.used(id) {
			continue
		}
		of := mapAt(connectors, id)
		at := "connectors::" + id
		if storage, ok := mapAt(of, "sending_queue")["storage"].(string); ok && !slices.Contains(texts(mapAt(c, "service")["extensions"]), storage) {
			errs = append(errs, fmt.Errorf("%s::sending_queue::storage: no extension %q is running: add it under extensions and service.extensions", at, storage))
		}
		errs = append(errs, c.noPipelines(id, at+"::default_pipelines", mapAt(of, "default_pipelines")))
		groups, _ := of["groups"].([]any)
		for i, g := range groups {
			group, _ := g.(map[string]any)
			errs = append(errs, c.noPipelines(id, fmt.Sprintf("%s::groups[%d]::pipelines", at, i), mapAt(group, "pipelines")))
		}
		errs = append(errs, c.otherKey(id, at, of))
	}
	return errors.Join(errs...)
}

// used reports whether a pipeline sends to a connector.
func (c config) used(connector string) bool {
	for name := range c.pipelines() {
		if slices.Contains(texts(c.pipeline(name)["exporters"]), connector) {
			return true
		}
	}
	return false
}

// noPipelines names the pipelines that are not behind a connector.
func (c config) noPipelines(connector, at string, pipelines map[string]any) error {
	var errs []error
	for _, signal := range slices.Sorted(maps.Keys(pipelines)) {
		for i, name := range texts(pipelines[signal]) {
			if !slices.Contains(texts(c.pipeline(name)["receivers"]), connector) {
				errs = append(errs, fmt.Errorf("%s::%s[%d]: no pipeline %q has %q among its receivers", at, signal, i, name, connector))
			}
		}
	}
	return errors.Join(errs...)
}

// otherKey says which exporters behind a connector would look for the tenant where it does not stand: they would refuse all there is.
func (c config) otherKey(connector, at string, of map[string]any) error {
	var errs []error
	written := keyOf(of["metadata_key"])
	said := map[string]bool{}
	for _, name := range c.behind(connector) {
		for _, exporter := range texts(c.pipeline(name)["exporters"]) {
			auth, _ := mapAt(c, "exporters", exporter, "auth")["authenticator"].(string)
			if typeOf(auth) != headersType || said[auth] {
				continue
			}
			if read := keyOf(mapAt(c, "extensions", auth)["from_metadata"]); read != written {
				said[auth] = true
				errs = append(errs, fmt.Errorf("%s::metadata_key: the tenant is written under %q, and extensions::%s, by which exporters::%s sends, reads %q: "+
					"set its from_metadata to the same", at, written, auth, exporter, read))
			}
		}
	}
	return errors.Join(errs...)
}

// behind are the pipelines that get client metadata from a connector as it is, in order of name.
func (c config) behind(connector string) (all []string) {
	senders := []string{connector}
	for i := 0; i < len(senders); i++ {
		for name := range c.pipelines() {
			if slices.Contains(all, name) || !slices.Contains(texts(c.pipeline(name)["receivers"]), senders[i]) {
				continue
			}
			all = append(all, name)
			for _, id := range texts(c.pipeline(name)["exporters"]) {
				if typeOf(id) == "forward" || typeOf(id) == "routing" {
					senders = append(senders, id)
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

// keyOf is a key of client metadata as it is compared: without regard to case.
func keyOf(setting any) string {
	if key, ok := setting.(string); ok && key != "" {
		return strings.ToLower(key)
	}
	return defaultKey
}
