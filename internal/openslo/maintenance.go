// SPDX-License-Identifier: Apache-2.0

package openslo

import (
	"slices"
	"time"
)

// At is the window that the moment t lies in, [start, end). It is false where t lies in none.
func (m *MaintenanceWindow) At(t time.Time) (start, end time.Time, in bool) {
	start = m.Start
	if m.Every != (Duration{}) {
		repeat := TimeWindow{Duration: m.Every, Start: m.Start, Location: m.Start.Location()}
		if start, _, in = repeat.Bounds(t); !in || !m.Until.IsZero() && !start.Before(m.Until) {
			return time.Time{}, time.Time{}, false
		}
	}
	end = start.Add(m.Duration)
	if t.Before(start) || !t.Before(end) {
		return time.Time{}, time.Time{}, false
	}
	return start, end, true
}

// Covers tells whether the window is for an SLO.
func (m *MaintenanceWindow) Covers(sloID string) bool {
	return len(m.SLOs) == 0 || slices.Contains(m.SLOs, sloID)
}

// Maintained are the maintenance windows of an SLO, sorted by name.
func (c *Catalog) Maintained(sloID string) []*MaintenanceWindow {
	var windows []*MaintenanceWindow
	for i := range c.Maintenance {
		if m := &c.Maintenance[i]; m.Covers(sloID) {
			windows = append(windows, m)
		}
	}
	return windows
}

// readMaintenance reads a MaintenanceWindow document.
func (p *parser) readMaintenance(d document, v value) {
	o, ok := v.object("slos", "services", "effect", "startTime", "timeZone", "duration", "every", "until", "reason")
	if !ok {
		return
	}
	m := MaintenanceWindow{Name: d.meta.name, Reason: o.optional("reason"), Effect: EffectSilence, Position: d.pos()}
	if e, ok := o.get("effect"); ok {
		m.Effect, _ = oneOf(e, EffectSilence, EffectExclude)
	}
	m.SLOs = p.readMaintained(o)
	var loc *time.Location
	m.Start, loc = readStart(o)
	length, ok := o.need("duration", "write how long it lasts, e.g. 2h")
	if ok {
		m.Duration = readGoDuration(length, "2h")
	}
	if e, ok := o.get("every"); ok {
		m.Every = readEvery(e)
		if most := m.Every.Approx(); most > 0 && m.Duration > most {
			length.problemf("%s is longer than the %s from one window to the next: write less", length.node.Value, m.Every)
		}
	}
	if u, ok := o.get("until"); ok {
		m.Until, ok = readLocalTime(u, loc, "end")
		switch {
		case !o.has("every") && !o.meant["every"]:
			u.problemf("is for windows that repeat: remove it, or write every, e.g. 1w")
		case ok && !m.Start.IsZero() && !m.Until.After(m.Start):
			u.problemf("%s is not after startTime: no window would ever begin", u.node.Value)
		}
	}
	p.catalog.Maintenance = append(p.catalog.Maintenance, m)
}

// readEvery reads after how long a window returns.
func readEvery(v value) Duration {
	d, ok := readDuration(v, "1w")
	if ok && (d.Unit == 'm' || d.Unit == 'h') {
		v.problemf("%s is too short: windows return after d, w, M, Q or Y, e.g. 1w", d)
		return Duration{}
	}
	return d
}

// readMaintained reads which SLOs a window is for, as sorted slo_ids.
func (p *parser) readMaintained(o object) []string {
	var ids []string
	p.eachOnce(o, "slos", func(item value) {
		if _, doc, ok := p.readSLOName(item); ok {
			ids = append(ids, doc.all...)
		}
	})
	p.eachOnce(o, "services", func(item value) {
		name, ok := item.text()
		if !ok {
			return
		}
		promises := p.services[name]
		for _, slo := range promises {
			ids = append(ids, p.slos[slo].all...)
		}
		if len(promises) > 0 {
			return
		}
		if _, known := p.names[KindService][name]; known {
			if !p.incomplete {
				item.problemf("service %s promises nothing in these files: remove it, or load the files of its SLOs too", shown(name))
			}
			return
		}
		p.unresolvedAmong(item, KindService, name, func() []string {
			names := append(sortedKeys(p.names[KindService]), sortedKeys(p.services)...)
			slices.Sort(names)
			return slices.Compact(names)
		})
	})
	slices.Sort(ids)
	return slices.Compact(ids)
}

// eachOnce reads the items of an optional list, which may hold each text once.
func (p *parser) eachOnce(o object, key string, read func(value)) {
	v, ok := o.get(key)
	if !ok {
		return
	}
	items, _ := v.list()
	seen := make(map[string]bool)
	for _, item := range items {
		if text, ok := item.scalar(); ok && seen[text] {
			item.problemf("%s stands twice in the list: keep one", shown(text))
			continue
		} else if ok {
			seen[text] = true
		}
		read(item)
	}
}
