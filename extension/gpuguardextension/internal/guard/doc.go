// SPDX-License-Identifier: Apache-2.0

// Package guard decides whether a process is ended, and ends it: what is known of the memory (watch), who may be ended (policy) and
// how often (budget) meet here, and nowhere else is anybody touched.
//
// In this order, each time: nobody is ended while the guard is paused, cools down or has spent its budget; a victim is looked for by
// policy; a handle of it is opened, and all that was decided on is looked at again through it; the budget is spent, on disk; the
// process is asked to end; and only after the grace, and if nobody has stopped the guard, it is killed.
package guard
