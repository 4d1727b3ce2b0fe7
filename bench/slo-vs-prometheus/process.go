// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a peer that runs. What it says goes to a file in its folder.
type process struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{} // closed when it has ended
}

// start runs a command in a folder of its own.
func start(dir, path string, args ...string) (*process, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(path, args...), log: filepath.Join(dir, "output.log"), done: make(chan struct{})}
	out, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, out, out
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait() // it is ended by a signal
		out.Close()
		close(p.done)
	}()
	return p, nil
}

// stop ends it, by force when it takes too long.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails only when it has already ended
	select {
	case <-p.done:
	case <-time.After(30 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// waitReady waits until a URL answers with 200.
func (p *process) waitReady(url string) error {
	for range 600 {
		select {
		case <-p.done:
			return p.complain(errors.New("it has ended"))
		case <-time.After(100 * time.Millisecond):
		}
		resp, err := http.Get(url) //nolint:gosec // an address of our own
		if err != nil {
			continue
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return nil
		}
	}
	return p.complain(fmt.Errorf("%s does not answer", url))
}

// complain adds the end of what it said to an error.
func (p *process) complain(err error) error {
	said, _ := os.ReadFile(p.log) // nothing is said, then
	if len(said) > 2000 {
		said = said[len(said)-2000:]
	}
	return fmt.Errorf("%s: %w\n%s", filepath.Base(p.cmd.Path), err, said)
}

// ticksPerSecond is the unit of times in /proc (proc(5)): USER_HZ, which is 100 on every architecture that Go has.
const ticksPerSecond = 100

// cpuSeconds is the user and system time so far.
func (p *process) cpuSeconds() (float64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields after the name", p.cmd.Process.Pid, len(fields))
	}
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return float64(ticks) / ticksPerSecond, nil
}

// peakMB is the most memory that was resident at any time, in 10^6 bytes.
func (p *process) peakMB() (float64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		if v, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseFloat(strings.Fields(v)[0], 64)
			return kib * 1024 / 1e6, err
		}
	}
	return 0, errors.New("/proc has no VmHWM")
}

// freeAddress is an address of 127.0.0.1 that nobody listens on.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
