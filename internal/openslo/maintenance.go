// SPDX-License-Identifier: Apache-2.0

package openslo

import "time"

func ShortWindow(long time.Duration) time.Duration {
	short := max((long / 12).Truncate(time.Second), 2*time.Minute)
	if short >= long {
		return 0
	}
	return short
}
func (m *MaintenanceWindow) At(t time.Time) (start, end time.Time, in bool) {
	return m.Start, m.Start.Add(m.Duration), !t.Before(m.Start) && t.Before(m.Start.Add(m.Duration))
}
func (c *Catalog) Maintained(id string) (all []*MaintenanceWindow) {
	for i := range c.Maintenance {
		all = append(all, &c.Maintenance[i])
	}
	return all
}
