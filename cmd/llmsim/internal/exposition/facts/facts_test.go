// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const dump = `# TYPE c_total counter
c_total{kind="a",model="m"} 1
c_total{kind="b",model="m"} 2
# TYPE h histogram
h_bucket{le="1.0"} 1
h_bucket{le="+Inf"} 1
h_sum 1
h_count 1
`

func parse(t *testing.T, text string) []Family {
	t.Helper()
	out, err := Parse(strings.NewReader(text))
	require.NoError(t, err)
	return out
}

func TestFactsAreNamesTypesLabelsEnumsAndBounds(t *testing.T) {
	assert.Equal(t, []Family{
		{Name: "c_total", Type: "counter", Labels: []string{"kind", "model"}, Values: map[string][]string{"kind": {"a", "b"}}},
		{Name: "h", Type: "histogram", Buckets: []float64{1}},
	}, parse(t, dump))
}

func TestDiffSaysWhatIsWrongInBothDirections(t *testing.T) {
	f := func(from, to string, want ...string) {
		t.Helper()
		assert.Equal(t, want, Diff(parse(t, dump), parse(t, strings.ReplaceAll(dump, from, to))))
	}
	f(`le="1.0"`, `le="1"`) // the same number is the same bound
	f(`le="1.0"`, `le="2"`, "h: buckets [2], want [1]")
	f(`kind="b"`, `kind="c"`, "c_total: values of kind [a c], want [a b]")
	f(`model=`, `name=`, "c_total: labels [kind name], want [kind model]")
	f(`counter`, `gauge`, "c_total: type gauge, want counter")
	f(`c_total`, `d_total`, "c_total: missing", "d_total: not expected")
}

func TestWhatCannotBeAFactIsAnError(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		_, err := Parse(strings.NewReader(text))
		assert.ErrorContains(t, err, want)
	}
	f("x{a=\"1\"} 1\nx{b=\"1\"} 1\n", "series with labels [a] and [b]")
	f("# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_sum 1\nh_count 1\n", "no bucket")
	f("x{", "text exposition")
}
