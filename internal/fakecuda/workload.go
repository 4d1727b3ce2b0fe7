// SPDX-License-Identifier: Apache-2.0

package fakecuda

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// Workload is a running program that does what it is told.
type Workload struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// Run starts a workload: a command for Built.Workload, or one that ends up as it, in a chroot for instance.
func Run(cmd *exec.Cmd) (*Workload, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &Workload{cmd: cmd, in: in, out: bufio.NewReader(out)}, nil
}

// PID of the program.
func (w *Workload) PID() int { return w.cmd.Process.Pid }

// Send tells it a command and does not wait.
func (w *Workload) Send(command string) error {
	_, err := io.WriteString(w.in, command+"\n")
	return err
}

// Answer waits for what it says to the oldest command.
func (w *Workload) Answer() (string, error) {
	line, err := w.out.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSuffix(line, "\n")
	if line != "ok" && !strings.HasPrefix(line, "ok ") {
		return "", errors.New(line)
	}
	return strings.TrimPrefix(strings.TrimPrefix(line, "ok"), " "), nil
}

// Do tells it a command and returns its answer, without the ok.
func (w *Workload) Do(command string) (string, error) {
	err := w.Send(command)
	if err != nil {
		return "", fmt.Errorf("%s: %w", command, err)
	}
	answer, err := w.Answer()
	if err != nil {
		return "", fmt.Errorf("%s: %w", command, err)
	}
	return answer, nil
}

// Kill ends it at once, and waits until it has.
func (w *Workload) Kill() error {
	err := w.cmd.Process.Kill()
	_ = w.cmd.Wait()
	return err
}

// Close lets it end, and waits until it has.
func (w *Workload) Close() error {
	_ = w.in.Close()
	return w.cmd.Wait()
}
