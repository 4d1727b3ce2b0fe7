// SPDX-License-Identifier: Apache-2.0

// Package ledger is what must be remembered of GPUs between readings: who they were, so that one that is lost is not
// forgotten; since when their counters count; how often which Xid was heard; and what has changed.
//
// It has no clock: times are Unix nanoseconds. It is not safe for concurrent use.
package ledger
