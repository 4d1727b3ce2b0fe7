// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/otelcol-llm/otelcol-llm/internal/shared"
	"github.com/otelcol-llm/otelcol-llm/receiver/nvidiagpureceiver/internal/metadata"
)

// engines are shared between the instances that serve metrics and logs of one receiver.
var engines shared.Group[*engine]

// NewFactory returns the factory of the nvidia_gpu receiver.
func NewFactory() receiver.Factory {
	return receiver.NewFactory(metadata.Type, createDefaultConfig,
		receiver.WithMetrics(createMetrics, metadata.Stability),
		receiver.WithLogs(createLogs, metadata.Stability))
}

// Where a kubelet has them. That there is nothing is usual, too.
const (
	defaultKubeletSocket = "/var/lib/kubelet/pod-resources/kubelet.sock"
	defaultKubeletLogs   = "/var/log/containers"
)

func createDefaultConfig() component.Config {
	return &Config{
		CollectionInterval: 10 * time.Second,
		RetryInterval:      10 * time.Second,
		Source:             sourceAuto,
		KubeletSocket:      defaultKubeletSocket,
		KubeletLogs:        defaultKubeletLogs,
		MaxProcesses:       1024,
		ReleaseWindow:      2 * time.Minute,
	}
}

func createMetrics(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Metrics) (receiver.Metrics, error) {
	return join(set, cfg, func(e *engine) { e.metrics = next })
}

func createLogs(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Logs) (receiver.Logs, error) {
	return join(set, cfg, func(e *engine) { e.logs = next })
}

func join(set receiver.Settings, cfg component.Config, connect func(*engine)) (*instance, error) {
	member, err := engines.Join(cfg, func() (*engine, error) { return newEngine(set, cfg.(*Config)) })
	if err != nil {
		return nil, err
	}
	connect(member.Engine())
	return &instance{member}, nil
}
