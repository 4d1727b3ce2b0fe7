// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// exclusions are the maintenance windows in which an SLO's events count for nothing.
type exclusions struct {
	windows []*openslo.MaintenanceWindow
	second  int64 // of the last question
	in      bool  // its answer: points of a batch share their time
}

func exclusionsOf(catalog *openslo.Catalog, id string) exclusions {
	var e exclusions
	for _, m := range catalog.Maintained(id) {
		if m.Effect == openslo.EffectExclude {
			e.windows = append(e.windows, m)
		}
	}
	return e
}

// cover reports whether an event time is excluded. Maintenance begins and ends on whole seconds.
func (e *exclusions) cover(t int64) bool {
	if len(e.windows) == 0 {
		return false
	}
	second := t / int64(time.Second)
	if second == e.second {
		return e.in
	}
	e.second, e.in = second, false
	for _, m := range e.windows {
		if _, _, in := m.At(time.Unix(second, 0)); in {
			e.in = true
		}
	}
	return e.in
}
