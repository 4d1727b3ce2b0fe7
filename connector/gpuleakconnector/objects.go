// SPDX-License-Identifier: Apache-2.0

package gpuleakconnector

import (
	"context"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-llm/otelcol-llm/connector/gpuleakconnector/internal/leak"
	"github.com/otelcol-llm/otelcol-llm/internal/attrs"
	"github.com/otelcol-llm/otelcol-llm/internal/intake"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// objects are the kinds of what an application makes and releases, by the value of the attribute that tells them.
var objects = map[string]leak.Kind{"engine": leak.Engines, "context": leak.Contexts, "block": leak.Blocks}

// logsSource keeps the logs of a resource from being waited for with its metrics.
var logsSource = attrs.String("logs")

// maxSaid bounds the records that are remembered so that one that is sent again does not count twice.
const maxSaid = 1 << 18

// consumeLogs hears what applications say of the objects that they make and release.
func (e *engine) consumeLogs(ctx context.Context, ld plog.Logs) {
	begin := e.now()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.fleet == nil {
		return // not started
	}
	for _, rl := range ld.ResourceLogs().All() {
		resource, newest := rl.Resource().Attributes(), window.Unset
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				step := 1.0
				if slices.Contains(e.cfg.Objects.Destroyed, record.EventName()) {
					step = -1
				} else if !slices.Contains(e.cfg.Objects.Created, record.EventName()) {
					continue
				}
				at := record.Timestamp()
				if at == 0 {
					at = record.ObservedTimestamp()
				}
				why := e.object(int64(at), begin.UnixNano(), record, sl.Scope().Attributes(), resource, step)
				if why != intake.NoTimestamp && why != intake.Future {
					newest = max(newest, int64(at))
				}
				count(&e.intake.Counts, why)
			}
		}
		if newest != window.Unset {
			e.intake.Watermark.Observe(attrs.Combine(logsSource, attrs.Hash(resource)), newest, begin.UnixNano())
		}
	}
	e.judge(begin.UnixNano())
	e.own.Consumed(ctx, &e.intake.Counts, e.now().Sub(begin))
}

// object gives one record to the fleet, or says why it does not count.
func (e *engine) object(at, now int64, record plog.LogRecord, scope, resource pcommon.Map, step float64) intake.Reason {
	m := record.Attributes()
	value := func(key string) string {
		if v, ok := attrs.Lookup(key, m, scope, resource); ok {
			return strings.Clone(v.AsString())
		}
		return ""
	}
	kind, known := objects[value(e.cfg.Objects.Attribute)]
	switch {
	case at <= 0:
		return intake.NoTimestamp
	case e.intake.Watermark.Ahead(at, now):
		return intake.Future
	case !known:
		return intake.NoValue
	}
	w := leak.Where{PID: value("process.pid")}
	for _, key := range hosts {
		if w.Host == "" {
			w.Host = value(key)
		}
	}
	said := attrs.Combine(attrs.Hash(resource), attrs.Hash(m), attrs.String(record.EventName()), uint64(at))
	if _, again := e.said[said]; again {
		return intake.Duplicate
	}
	if len(e.said) >= maxSaid {
		return intake.SeriesLimit
	}
	why := e.hear(at, kind, w, step)
	if why == intake.None {
		e.said[said] = at
	}
	return why
}

// judge judges as far as the input has come. The caller holds the mutex.
func (e *engine) judge(now int64) {
	before := e.fleet.Late()
	e.fleet.Advance(e.intake.Watermark.Advance(now, window.Unset))
	late := e.fleet.Late()
	if late == before {
		return
	}
	for id, at := range e.said {
		if at < late {
			delete(e.said, id) // one that is sent again is late
		}
	}
}
