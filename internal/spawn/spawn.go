// SPDX-License-Identifier: Apache-2.0

// Package spawn runs the shipped binary as a child process, for tests that go end to end.
//
//	c := spawn.Start(t, spawn.Options{Configs: []string{"builtin:all-in-one", spawn.WriteConfig(t, mine)}})
//	c.WaitReady()
//	… send something, look at what comes out …
//	c.Stop()
//
// The binary is bin/otelcol-llm of this checkout (`make build`) or what OTELCOL_LLM_BIN names. A missing binary fails
// the test, it does not skip it. The process is stopped when the test ends, with SIGTERM first and SIGKILL when that
// did not help, and its log is printed when the test failed.
package spawn

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// readyLine is what the Collector logs when every component has started.
	readyLine = "Everything is ready"
	// readyTimeout is far above what a start takes (below a second), for a busy machine.
	readyTimeout = 2 * time.Minute
	// stopTimeout is how long a SIGTERM has before SIGKILL.
	stopTimeout = time.Minute
	// pipeTimeout is how long after the end whoever inherited the pipes may keep Wait waiting. It is long, since what is in the
	// pipes and was not read by then is lost.
	pipeTimeout = 30 * time.Second
	pollEvery   = 10 * time.Millisecond
)

// Options say how the binary is started. The zero value starts it without any argument.
type Options struct {
	// Configs become one --config each, in order: files, or URIs such as builtin:all-in-one and yaml:….
	Configs []string
	// Args come after the configs.
	Args []string
	// Env are KEY=value pairs on top of the test's own environment.
	Env []string
	// Dir is the working directory; empty means a temporary one, so that relative paths stay out of the checkout.
	Dir string
	// Binary is what is started instead of the one under test, such as a script that starts it in a way of its own.
	Binary string
}

// Collector is one running process. Its methods may be called from the test's goroutine only, except Logs.
type Collector struct {
	t     testing.TB
	cmd   *exec.Cmd
	logs  *buffer
	done  chan struct{} // closed after Wait has returned
	ready bool          // it was seen to be ready
}

// Start starts the binary and returns at once; see WaitReady.
func Start(t testing.TB, opts Options) *Collector {
	t.Helper()
	var args []string
	for _, config := range opts.Configs {
		args = append(args, "--config", config)
	}
	if opts.Dir == "" {
		opts.Dir = t.TempDir()
	}

	c := &Collector{t: t, logs: &buffer{}, done: make(chan struct{})}
	if opts.Binary == "" {
		opts.Binary = Binary(t)
	}
	// Without SIGINT, so that it is seen when the process asks for it: see listens.
	c.cmd = exec.Command("/bin/sh", append([]string{"-c", `trap '' INT; exec "$0" "$@"`, opts.Binary}, append(args, opts.Args...)...)...)
	c.cmd.Dir = opts.Dir
	c.cmd.Env = append(os.Environ(), opts.Env...)
	c.cmd.Stdout, c.cmd.Stderr = c.logs, c.logs
	c.cmd.WaitDelay = pipeTimeout
	if err := c.cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", c.cmd, err)
	}
	go func() {
		_ = c.cmd.Wait() // the state is read from cmd.ProcessState
		close(c.done)
	}()
	t.Cleanup(func() {
		c.end()
		if t.Failed() {
			t.Logf("log of %s:\n%s", c.cmd, c.Logs())
		}
	})
	return c
}

// WaitReady waits until every component has started. A process that ends before fails the test.
func (c *Collector) WaitReady() {
	c.t.Helper()
	c.WaitLog(readyLine, readyTimeout)
	c.ready = true
}

// WaitLog waits until the log contains text. The test fails when time is up or the process has ended without it.
func (c *Collector) WaitLog(text string, timeout time.Duration) {
	c.t.Helper()
	deadline := time.Now().Add(timeout)
	for !strings.Contains(c.Logs(), text) {
		if !c.Running() && !strings.Contains(c.Logs(), text) {
			c.t.Fatalf("the collector ended (%s) before it logged %q", c.cmd.ProcessState, text)
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("the collector did not log %q within %s", text, timeout)
		}
		time.Sleep(pollEvery)
	}
}

// Logs returns what the process has written to stdout and stderr so far.
func (c *Collector) Logs() string { return c.logs.String() }

// Running says whether the process is alive.
func (c *Collector) Running() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// PID returns the process id.
func (c *Collector) PID() int { return c.cmd.Process.Pid }

// Signal sends a signal that the Collector listens for. It says that it is ready before it listens, and a signal that comes
// between ends it like any program: that it listens is waited for.
func (c *Collector) Signal(sig syscall.Signal) {
	c.t.Helper()
	if !c.settle() {
		c.t.Fatalf("the collector does not listen for signals")
	}
	if err := c.cmd.Process.Signal(sig); err != nil {
		c.t.Fatalf("%s: %v", sig, err)
	}
}

// settle waits until the process listens for signals, unless it was never ready or has ended, and says whether it does.
func (c *Collector) settle() bool {
	for deadline := time.Now().Add(readyTimeout); c.ready && c.Running() && !listens(c.PID()); time.Sleep(pollEvery) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// listens says whether a process has asked for SIGINT. A Go program has a handler for other signals from the start, whether or not it
// has asked for them, but keeps on ignoring SIGINT, if it was started so, until it does. The Collector asks for SIGHUP before it,
// for SIGTERM in the same breath, and for what its components want when they start.
func listens(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(status), "SigCgt:")
	mask, _, _ := strings.Cut(strings.TrimSpace(after), "\n")
	caught, err := strconv.ParseUint(mask, 16, 64)
	return err == nil && caught>>(syscall.SIGINT-1)&1 == 1
}

// Stop sends SIGTERM, waits for the end and returns the exit code. Having to use SIGKILL fails the test.
// A second call only returns the exit code.
func (c *Collector) Stop() int {
	c.t.Helper()
	if !c.end() {
		c.t.Errorf("the collector was still there %s after SIGTERM and had to be killed", stopTimeout)
	}
	return c.cmd.ProcessState.ExitCode()
}

// Kill ends the process as a crash would, with SIGKILL and no drain.
func (c *Collector) Kill() {
	c.t.Helper()
	if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		c.t.Errorf("kill: %v", err)
	}
	<-c.done
}

// end stops the process and says whether SIGTERM was enough.
func (c *Collector) end() bool {
	c.settle()
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // fails only when it has already ended
	select {
	case <-c.done:
		return true
	case <-time.After(stopTimeout):
		_ = c.cmd.Process.Kill()
		<-c.done
		return false
	}
}

// Run runs the binary to its end, for `validate`, `components` and the like.
func Run(t testing.TB, args ...string) (output string, exitCode int) {
	t.Helper()
	cmd := exec.Command(Binary(t), args...)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("run %s: %v", cmd, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// Binary returns the path of the binary under test.
func Binary(t testing.TB) string {
	t.Helper()
	bin := os.Getenv("OTELCOL_LLM_BIN")
	if bin == "" {
		bin = filepath.Join(Root(t), "bin", "otelcol-llm")
	}
	bin, err := filepath.Abs(bin)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(bin); err != nil {
		t.Fatalf("the binary under test is missing: %v; run `make build` or set OTELCOL_LLM_BIN", err)
	}
	return bin
}

// Root returns the root of this checkout.
func Root(t testing.TB) string {
	t.Helper()
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		t.Fatal("no caller information")
	}
	if !filepath.IsAbs(file) { // built with -trimpath: fall back to the folder of the running test
		wd, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		file = filepath.Join(wd, "x")
	}
	for dir := filepath.Dir(file); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "builder-config.yaml")); err == nil {
			return dir
		}
	}
	t.Fatalf("no builder-config.yaml above %s", file)
	return ""
}

// buffer is a bytes.Buffer that a process writes to while a test reads it.
type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
