// SPDX-License-Identifier: Apache-2.0

package hostname

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAHostIsReadAsItIsWritten(t *testing.T) {
	f := func(host, want string) {
		t.Helper()
		assert.Equal(t, want, Of(host))
	}
	f("localhost", "localhost")
	f("Metrics.Example.org:9191", "metrics.example.org")
	f("metrics.example.org.", "metrics.example.org")
	f("metrics.example.org.:80", "metrics.example.org")
	f("[::1]:9191", "::1")
	f("[::1]", "::1")
	f("::1", "::1")
	f("", "")
}

func TestWhatIsNoNameIsRefused(t *testing.T) {
	for _, name := range []string{"localhost", "Metrics.Example.org", "10.0.0.1", "::1"} {
		assert.NoError(t, Check(name), name)
	}
	for _, name := range []string{"", "a:80", "https://a", "*.example.org", "a b", "10.0.0.1:80", "[::1]:80", "[::1]"} {
		assert.ErrorContains(t, Check(name), "is no host name", name)
	}
}

func TestNamesAreAsTheyAreCalled(t *testing.T) {
	assert.Equal(t, []string{"a.example.org", "b"}, All("A.example.org.", "b"))
}
