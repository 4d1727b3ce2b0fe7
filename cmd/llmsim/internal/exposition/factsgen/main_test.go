// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/exposition/facts"
)

func TestWhatIsWrittenCanBeLoadedAndHoldsNoHelp(t *testing.T) {
	dump := "# HELP x A sentence of somebody's.\n# TYPE x gauge\nx{a=\"1\"} 5\n"
	var out bytes.Buffer
	require.NoError(t, generate("somewhere", strings.NewReader(dump), &out))
	assert.NotContains(t, out.String(), "sentence of")
	got, err := facts.Load(&out)
	require.NoError(t, err)
	assert.Equal(t, facts.File{Source: "somewhere", Families: []facts.Family{{Name: "x", Type: "gauge", Labels: []string{"a"}}}}, got)
}

func TestBadDumpIsAnError(t *testing.T) {
	assert.Error(t, generate("", strings.NewReader("x{"), &bytes.Buffer{}))
}
