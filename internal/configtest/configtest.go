// SPDX-License-Identifier: Apache-2.0

// Package configtest reads configurations in tests as the Collector does.
package configtest

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/confmap/xconfmap"
)

// Read reads a section of a file over a default configuration, and validates what comes of it.
func Read[C component.Config](t testing.TB, file, section string, defaults C) (C, error) {
	t.Helper()
	conf, err := confmaptest.LoadConf(file)
	require.NoError(t, err)
	sub, err := conf.Sub(section)
	require.NoError(t, err)
	if err := sub.Unmarshal(defaults); err != nil {
		return defaults, err
	}
	return defaults, xconfmap.Validate(defaults)
}

// Refused proves that a section of a file is refused with all of the messages.
func Refused[C component.Config](t testing.TB, file, section string, defaults C, messages ...string) {
	t.Helper()
	_, err := Read(t, file, section, defaults)
	for _, message := range messages {
		require.ErrorContains(t, err, message)
	}
}
