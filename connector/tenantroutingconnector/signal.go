// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"time"

	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/otelcol-llm/otelcol-llm/connector/tenantroutingconnector/internal/limit"
)

// signal says what a router has to know of what it routes.
type signal[T comparable] struct {
	id      pipeline.Signal
	items   func(T) int
	bytes   func(T) int
	fit     func(T, int) int // removes items that are larger than so many bytes, and returns how many
	clone   func(T) T
	split   func(*router[T], T, *request[T])
	join    func(T, []part[T])
	markAll func(T, *tenantOf[T])
	// own takes data over from nobody, and free gives it up: the Collector counts who holds data, and whatever enters a pipeline
	// without an owner is freed when it has passed.
	own  func(T) bool
	free func(T)
	// export makes an exporter of exporterhelper that pushes to a function.
	export func(set exporter.Settings, cfg *Config, push sendFunc[T], opts ...exporterhelper.Option) (*exporting[T], error)
	// series removes points of series for which there is no room, and returns how many; nil where there are no series.
	series func(T, *limit.Series, time.Time) int
}
