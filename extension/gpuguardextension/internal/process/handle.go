// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/guard"
)

// handle is a pidfd.
type handle int

// Open returns a handle of a process.
func (t *Table) Open(pid int) (guard.Handle, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil, guard.ErrEnded
	}
	if err != nil {
		return nil, fmt.Errorf("pidfd_open %d: %w", pid, err)
	}
	return handle(fd), nil
}

// Terminate asks the process to end.
func (h handle) Terminate() error { return h.signal(unix.SIGTERM) }

// Kill ends it.
func (h handle) Kill() error { return h.signal(unix.SIGKILL) }

func (h handle) signal(signal unix.Signal) error {
	err := unix.PidfdSendSignal(int(h), signal, nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return guard.ErrEnded
	}
	return err
}

// slice is how long is waited before it is looked whether somebody has called the waiting off.
const slice = 50 * time.Millisecond

// Wait waits until the process has ended, for at most so long or until stop says so. It says whether the process has.
func (h handle) Wait(most time.Duration, stop func() bool) bool {
	deadline := time.Now().Add(most)
	for {
		left := time.Until(deadline)
		fds := []unix.PollFd{{Fd: int32(h), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(max(min(left, slice), 0).Milliseconds()))
		if err == nil && n > 0 {
			return true
		}
		if left <= 0 || stop() {
			return false
		}
	}
}

// Close gives the handle back.
func (h handle) Close() { _ = unix.Close(int(h)) } // nothing was written
