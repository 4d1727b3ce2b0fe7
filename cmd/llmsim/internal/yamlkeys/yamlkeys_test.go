// SPDX-License-Identifier: Apache-2.0

package yamlkeys

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMergedKeysGiveWayToOwnOnes(t *testing.T) {
	_, o, err := Parse("f", []byte("base: &b {x: 1, y: 2}\nmore: &m {y: 3, z: 4}\ntop: {<<: [*b, *m], x: 9}"))
	require.NoError(t, err)
	top := o.Object("top")
	assert.Equal(t, []int{9, 2, 4}, []int{top.Int("x", 0, 0), top.Int("y", 0, 0), top.Int("z", 0, 0)})
}

func TestMappingThatMergesItselfEnds(t *testing.T) {
	_, o, err := Parse("f", []byte("a: &a {<<: *a, x: 1}"))
	if err == nil {
		assert.Equal(t, 1, o.Object("a").Int("x", 0, 0))
	}
}

func TestSyntaxErrorNamesTheFile(t *testing.T) {
	_, _, err := Parse("f.yaml", []byte("a: ["))
	assert.ErrorContains(t, err, "f.yaml: yaml: ")
}

func TestEmptyDocumentHasOnlyDefaults(t *testing.T) {
	r, o, err := Parse("f", nil)
	require.NoError(t, err)
	assert.Equal(t, "d", o.String("s", "d"))
	assert.Empty(t, o.Objects("l"))
	assert.Empty(t, o.Strings("m"))
	o.Done()
	assert.NoError(t, r.Err())
}
