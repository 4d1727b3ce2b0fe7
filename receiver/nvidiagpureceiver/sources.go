// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
)

// newSource returns the source that the settings ask for.
func newSource(_ *Config, _ *zap.Logger) gpu.Source {
	return none{}
}

type none struct{}

func (none) Open(context.Context, func(gpu.Event)) error {
	return fmt.Errorf("none: %w", gpu.ErrUnavailable)
}
func (none) Read(context.Context, *gpu.Set, *gpu.Snapshot) error { return nil }
func (none) Close() error                                        { return nil }
