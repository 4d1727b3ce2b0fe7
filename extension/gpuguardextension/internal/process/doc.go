// SPDX-License-Identifier: Apache-2.0

// Package process is the processes of this machine: what is known of one, and how it is ended without ever meeting another one
// that was given the same number.
//
// A Handle is a pidfd. It belongs to one process and never to its successor. Who that is, is read from /proc after it was opened: if
// /proc shows the process that was meant, the handle is of that one, since a handle of one that had ended before can do nothing.
package process
