// SPDX-License-Identifier: Apache-2.0

package openslo

import "time"

// ShortWindow is the short window beside a long one over which a burn rate is looked at: a twelfth of it, as 5m is of 1h,
// and at least 2m. With both, an alert ends soon after its cause. It is 0 where a short one would be no shorter.
//
// The twelfth is that of Google's SRE workbook, chapter "Alerting on SLOs", table 5-8: 1h and 5m, 6h and 30m, 3d and 6h.
func ShortWindow(long time.Duration) time.Duration {
	short := max((long / 12).Truncate(time.Second), 2*time.Minute)
	if short >= long {
		return 0
	}
	return short
}
