// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// process is a child whose output goes to a file.
type process struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

// patience is how long a child has to end by itself.
const patience = 10 * time.Second

func start(log string, env []string, name string, args ...string) (*process, error) {
	f, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer f.Close() // the child has it
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = f, f
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = ofItsOwn()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w: make build makes it", err)
	}
	p := &process{cmd: cmd, log: log, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // the log says why it ended
		close(p.done)
	}()
	return p, nil
}

// stop ends the child, with SIGTERM first.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	select {
	case <-p.done:
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// ended says why a child that should run does not.
func (p *process) ended() error {
	text, _ := os.ReadFile(p.log)
	const enough = 2000
	if len(text) > enough {
		text = text[len(text)-enough:]
	}
	return fmt.Errorf("%s ended: %s; the end of its log:\n%s", p.cmd.Path, p.cmd.ProcessState, text)
}

// ports hands out the usual ports, or those that the environment names, and others where they are taken, so that the demo runs
// beside anything.
type ports struct {
	port map[string]int
	err  error
}

// env returns NAME=port.
func (p *ports) env(name string, usual int) string {
	if p.port == nil {
		p.port = map[string]int{}
	}
	if asked, err := strconv.Atoi(os.Getenv(name)); err == nil {
		usual = asked
	}
	port, err := free(usual)
	// Below those that systems give to connections that go out: one of them could be taken before the Collector listens on it.
	for tries := 0; err != nil && tries < 100; tries++ {
		port, err = free(20_000 + rand.IntN(12_000))
	}
	if err != nil {
		p.err = err
	}
	p.port[name] = port
	return name + "=" + strconv.Itoa(port)
}

// free returns the port if nobody listens on it.
func free(port int) (int, error) {
	l, err := net.Listen("tcp", net.JoinHostPort("localhost", strconv.Itoa(port)))
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
