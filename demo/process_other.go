// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package main

import "syscall"

// ofItsOwn puts a child into a group of its own, so that Ctrl-C in the terminal reaches us alone and we stop the children
// in order.
func ofItsOwn() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
