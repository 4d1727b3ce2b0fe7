// SPDX-License-Identifier: Apache-2.0

package gpuguardreceiver

import (
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-llm/otelcol-llm/internal/strict"
)

// Config is the configuration of the gpu_guard receiver.
type Config struct {
	// Guard is the id of the gpu_guard extension.
	Guard component.ID `mapstructure:"guard"`
	// MaxPending bounds the events that wait for their consumer; of more, the oldest are dropped and counted.
	MaxPending int `mapstructure:"max_pending"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Unmarshal refuses null values besides what the Collector refuses.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return strict.Unmarshal(conf, c) }

// Validate names each setting that is wrong and what would be right.
func (c *Config) Validate() error {
	if c.MaxPending < 1 {
		return fmt.Errorf("max_pending: %d must be at least 1", c.MaxPending)
	}
	return nil
}
