// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

// reason says why items did not go on as what they came as.
type reason uint8

const (
	noReason    reason = iota
	unknownName        // nothing that is asked names a tenant
	invalidName        // what does is no id that backends take, or stands in no table
	overflowing        // max_tenants are known already
	overItems
	overBytes
	overSeries
	queueFull
	tooLarge    // a queue could not take it if it were empty, nor send it in parts
	notTaken    // there is no queue, and what comes after did not take it
	undelivered // the destination refused it for good, or it was tried for too long
	reasons     // how many there are
)

var reasonNames = [reasons]string{
	"", "unknown", "invalid", "overflow", "items_per_second", "bytes_per_second", "active_series", "queue_full", "too_large", "failed", "undelivered",
}

func (r reason) String() string { return reasonNames[r] }
