// SPDX-License-Identifier: Apache-2.0

// Package cputest measures what code costs a processor. A machine that stands still, or is busy with other things, adds nothing to it, as
// it does to what passes on a clock.
package cputest

import (
	"syscall"
	"time"

	"github.com/stretchr/testify/require"
)

// Time is how long this process computes while something is done, in all of its threads.
func Time(t require.TestingT, do func()) time.Duration {
	before := Used(t)
	do()
	return Used(t) - before
}

// Used is how long this process has computed until now.
func Used(t require.TestingT) time.Duration {
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
