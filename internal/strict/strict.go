// SPDX-License-Identifier: Apache-2.0

// Package strict reads a component's configuration and refuses what the Collector would pass over in silence.
//
// A key with the value null keeps its default without a word
// (https://github.com/open-telemetry/opentelemetry-collector/issues/15907): a variable that is not set, or a value lost
// in templating, would go unnoticed.
package strict

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.opentelemetry.io/collector/confmap"
)

// Unmarshal is for the Unmarshal method of a component's Config: it reads conf into cfg, and reports every null with
// the path of its key.
func Unmarshal(conf *confmap.Conf, cfg any) error {
	return errors.Join(nulls("", conf.ToStringMap()), conf.Unmarshal(cfg))
}

func nulls(path string, value any) error {
	var errs []error
	switch v := value.(type) {
	case nil:
		return fmt.Errorf("%s: is null: give it a value, or remove the key to have the default", path)
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			at := key
			if path != "" {
				at = path + "::" + key // as the Collector writes paths
			}
			errs = append(errs, nulls(at, v[key]))
		}
	case []any:
		for i, element := range v {
			errs = append(errs, nulls(fmt.Sprintf("%s[%d]", path, i), element))
		}
	}
	return errors.Join(errs...)
}
