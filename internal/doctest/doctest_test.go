// SPDX-License-Identifier: Apache-2.0

package doctest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/config/confighttp"
)

// failures is a test that gathers what it would fail with.
type failures struct {
	testing.TB
	all []string
}

func (f *failures) Helper() {}

func (f *failures) Errorf(_ string, args ...any) { f.all = append(f.all, args[0].(string)) }

// Scenario: a folder whose README has no table. Guarantees: every setting that needs a row is missed: one of its own, one of
// a squashed struct, one of a nested struct, and of a struct of the Collector those that are named.
func TestAMissingRowIsFound(t *testing.T) {
	type Kept struct {
		For time.Duration `mapstructure:"for"`
	}
	type query struct {
		Limit int `mapstructure:"limit"`
	}
	type config struct {
		confighttp.ServerConfig `mapstructure:",squash"`
		Kept                    `mapstructure:",squash"`
		Names                   []string `mapstructure:"names"`
		Query                   query    `mapstructure:"query"`
		URL                     string   `mapstructure:"url"`

		_ struct{}
	}
	t.Chdir("testdata")
	found := &failures{TB: t}
	server := confighttp.NewDefaultServerConfig()
	server.NetAddr.Endpoint = "localhost:1"
	Settings(found, &config{ServerConfig: server, Kept: Kept{time.Minute}, Query: query{8}}, map[string]string{"endpoint": "", "url": "none"})
	assert.Equal(t, []string{"| `endpoint` | `localhost:1` |", "| `for` | `1m` |", "| `names` | `[]` |", "| `limit` | `8` |", "| `url` | none |"}, found.all)
}
