// SPDX-License-Identifier: Apache-2.0

package cudamemoryreceiver

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/otelcol-llm/otelcol-llm/receiver/cudamemoryreceiver/internal/metadata"
)

// NewFactory returns the factory of the cuda_memory receiver.
func NewFactory() receiver.Factory {
	return receiver.NewFactory(metadata.Type, createDefaultConfig, receiver.WithMetrics(createMetrics, metadata.Stability))
}

// Where a kubelet has them. That there is nothing is usual, too.
const (
	defaultKubeletSocket = "/var/lib/kubelet/pod-resources/kubelet.sock"
	defaultKubeletLogs   = "/var/log/containers"
)

func createDefaultConfig() component.Config {
	return &Config{
		CollectionInterval: 10 * time.Second,
		ScanInterval:       time.Second,
		RetryInterval:      10 * time.Second,
		MaxEntries:         65536,
		MaxProcesses:       1024,
		KubeletSocket:      defaultKubeletSocket,
		KubeletLogs:        defaultKubeletLogs,
	}
}

func createMetrics(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Metrics) (receiver.Metrics, error) {
	return newEngine(set, cfg.(*Config), next)
}
