// SPDX-License-Identifier: Apache-2.0

// Package strict reads a component's configuration and refuses what the Collector would pass over in silence.
//
//   - A key with the value null keeps its default without a word
//     (https://github.com/open-telemetry/opentelemetry-collector/issues/15907): a variable that is not set, or a value
//     lost in templating, would go unnoticed.
//   - A duration without a unit is taken for nanoseconds: lateness: 30 would be next to nothing.
//   - A fraction where a whole number belongs loses its fraction.
package strict

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/confmap"
)

// Unmarshal is for the Unmarshal method of a component's Config: it reads conf into cfg, a pointer to a struct, and reports
// what it refuses with the path of its key.
func Unmarshal(conf *confmap.Conf, cfg any) error {
	raw := conf.ToStringMap()
	return errors.Join(nulls("", raw), numbers("", raw, reflect.TypeOf(cfg).Elem()), conf.Unmarshal(cfg))
}

var duration = reflect.TypeFor[time.Duration]()

// numbers reports numbers that do not fit the fields they are for, in structs, lists and maps of any depth.
func numbers(path string, raw any, of reflect.Type) error {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch v := raw.(type) {
	case map[string]any:
		switch of.Kind() {
		case reflect.Struct:
			return fields(path, v, of)
		case reflect.Map:
			var errs []error
			for _, key := range slices.Sorted(maps.Keys(v)) {
				errs = append(errs, numbers(join(path, key), v[key], of.Elem()))
			}
			return errors.Join(errs...)
		}
	case []any:
		if of.Kind() == reflect.Slice || of.Kind() == reflect.Array {
			var errs []error
			for i, element := range v {
				errs = append(errs, numbers(fmt.Sprintf("%s[%d]", path, i), element, of.Elem()))
			}
			return errors.Join(errs...)
		}
	}
	number := reflect.ValueOf(raw)
	switch {
	case !number.IsValid(): // null
		return nil
	case of == duration && (number.CanInt() || number.CanFloat()) && !number.IsZero():
		return fmt.Errorf("%s: %v has no unit: write %vs, %vm or %vh", path, raw, raw, raw, raw)
	case of != duration && reflect.Zero(of).CanInt() && number.CanFloat() && number.Float() != math.Trunc(number.Float()):
		return fmt.Errorf("%s: %v is no whole number", path, raw)
	}
	return nil
}

func fields(path string, raw map[string]any, of reflect.Type) error {
	var errs []error
	for i := range of.NumField() {
		field := of.Field(i)
		key, options, _ := strings.Cut(field.Tag.Get("mapstructure"), ",")
		if strings.Contains(options, "squash") {
			errs = append(errs, numbers(path, raw, field.Type)) // its keys stand beside those of the struct around it
			continue
		}
		if value, ok := raw[key]; ok {
			errs = append(errs, numbers(join(path, key), value, field.Type))
		}
	}
	return errors.Join(errs...)
}

// join writes a path as the Collector does.
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "::" + key
}

func nulls(path string, value any) error {
	var errs []error
	switch v := value.(type) {
	case nil:
		return fmt.Errorf("%s: is null: give it a value, or remove the key to have the default", path)
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			errs = append(errs, nulls(join(path, key), v[key]))
		}
	case []any:
		for i, element := range v {
			errs = append(errs, nulls(fmt.Sprintf("%s[%d]", path, i), element))
		}
	}
	return errors.Join(errs...)
}
