// SPDX-License-Identifier: Apache-2.0

package main

import "syscall"

// ofItsOwn puts a child into a group of its own, so that Ctrl-C in the terminal reaches us alone and we stop the children
// in order. Should we be killed, the kernel ends them.
func ofItsOwn() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
