// SPDX-License-Identifier: Apache-2.0

package gpuguardextension

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/extension"

	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/guard"
	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/metadata"
)

// NewFactory is the factory of gpu_guard.
func NewFactory() extension.Factory {
	return extension.NewFactory(metadata.Type, createDefaultConfig, create, metadata.ExtensionStability)
}

// Where Linux and a kubelet have them.
const (
	defaultCgroupRoot    = "/sys/fs/cgroup"
	defaultKubeletSocket = "/var/lib/kubelet/pod-resources/kubelet.sock"
	defaultKubeletLogs   = "/var/log/containers"
)

func createDefaultConfig() component.Config {
	server := confighttp.NewDefaultServerConfig()
	server.ReadHeaderTimeout = 10 * time.Second
	return &Config{
		DryRun:            true,
		Threshold:         0.85,
		For:               3 * time.Second,
		LeakWithin:        24 * time.Hour,
		Order:             []string{guard.ByLeak, guard.ByGrowth, guard.ByLive, guard.ByNewest},
		MinShare:          0.05,
		GrowthWindow:      10 * time.Minute,
		Grace:             10 * time.Second,
		Method:            guard.MethodKill,
		CgroupRoot:        defaultCgroupRoot,
		MaxActionsPerHour: 3,
		Cooldown:          time.Minute,
		StaleAfter:        15 * time.Second,
		KubeletSocket:     defaultKubeletSocket,
		KubeletLogs:       defaultKubeletLogs,
		MaxProcesses:      4096,
		MaxDevices:        256,
		Audit:             AuditConfig{MaxBytes: 10 << 20, Backups: 5},
		Admin:             AdminConfig{ServerConfig: server},
	}
}

func create(_ context.Context, set extension.Settings, cfg component.Config) (extension.Extension, error) {
	return newExtension(set, cfg.(*Config)), nil
}
