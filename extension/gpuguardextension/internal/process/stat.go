// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/guard"
)

const (
	// maxFile bounds what is read of a file of /proc. Of a command line, more is of no use.
	maxFile = 64 << 10
	// kernelThread is PF_KTHREAD.
	kernelThread = 0x00200000
	// The fields of /proc/PID/stat, counted from the one behind the name.
	stateField  = 0
	parentField = 1
	flagsField  = 6
	startField  = 19
	deleted     = " (deleted)"
)

// stat is what /proc/PID/stat says.
type stat struct {
	name   string
	state  byte
	parent int
	flags  uint64
	start  uint64
}

func (s *stat) ended() bool { return s.state == 'Z' || s.state == 'X' || s.state == 'x' }

func readStat(pid int) (s stat, err error) {
	content, err := read(pid, "stat")
	if err != nil {
		return s, err
	}
	// The name is in parentheses and may have any character, parentheses and spaces too.
	opened, closed := bytes.IndexByte(content, '('), bytes.LastIndexByte(content, ')')
	if opened < 0 || closed < opened {
		return s, fmt.Errorf("/proc/%d/stat: no name in parentheses", pid)
	}
	fields := strings.Fields(string(content[closed+1:]))
	if len(fields) <= startField {
		return s, fmt.Errorf("/proc/%d/stat: has %d fields behind the name, and not %d", pid, len(fields), startField+1)
	}
	s.name, s.state = string(content[opened+1:closed]), fields[stateField][0]
	var errs [3]error
	s.parent, errs[0] = strconv.Atoi(fields[parentField])
	s.flags, errs[1] = strconv.ParseUint(fields[flagsField], 10, 64)
	s.start, errs[2] = strconv.ParseUint(fields[startField], 10, 64)
	return s, errors.Join(errs[:]...)
}

// read reads a file of a process.
func read(pid int, name string) ([]byte, error) {
	file, err := os.Open(filepath.Join(procRoot, strconv.Itoa(pid), name))
	if err == nil {
		defer file.Close()
		var content []byte
		if content, err = io.ReadAll(io.LimitReader(file, maxFile)); err == nil {
			return content, nil
		}
	}
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return nil, guard.ErrEnded
	}
	return nil, err
}

// realUID reads the first number behind Uid: of /proc/PID/status; below 0 where it is not known.
func realUID(status []byte) int {
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte("Uid:")); ok {
			if fields := bytes.Fields(rest); len(fields) > 0 {
				if uid, err := strconv.Atoi(string(fields[0])); err == nil {
					return uid
				}
			}
		}
	}
	return -1
}

// cgroupPath is the path in version 2, else the longest of those in version 1, which is where a runtime has put the process.
func cgroupPath(content []byte) (path string) {
	for line := range strings.Lines(string(content)) {
		hierarchy, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controllers, at, ok := strings.Cut(rest, ":")
		if !ok {
			continue
		}
		if hierarchy == "0" && controllers == "" && at != "/" {
			return at
		}
		if len(at) > len(path) {
			path = at
		}
	}
	return path
}

// unifiedPath is the path in version 2; empty: there is none.
func unifiedPath(content []byte) string {
	for line := range strings.Lines(string(content)) {
		if path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			return path
		}
	}
	return ""
}
