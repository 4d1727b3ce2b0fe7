// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/guard"
)

const (
	// maxFile bounds what is read of a file of /proc. The kernel takes 6 MiB of arguments at most; what is longer all the same is not
	// known, since what was cut off may be what protects.
	maxFile = 8 << 20
	// kernelThread is PF_KTHREAD.
	kernelThread = 0x00200000
	// The fields of /proc/PID/stat, counted from the one behind the name.
	stateField  = 0
	parentField = 1
	flagsField  = 6
	threads     = 17
	startField  = 19
	argStart    = 45
	argEnd      = 46
	envStart    = 47
	deleted     = " (deleted)"
)

// stat is what /proc/PID/stat says.
type stat struct {
	name    string
	state   byte
	parent  int
	flags   uint64
	threads int
	start   uint64
	// Where the arguments are, and what follows them. 0: not known.
	argStart, argEnd, envStart uint64
}

// retitled says whether a command line may not be the one that the program was started with: it was written over, as by setproctitle, or
// its place was moved. The kernel leaves arguments that each end with a zero, and the environment right behind them.
func (s *stat) retitled(cmdline []byte) bool {
	return s.argEnd == 0 || s.argEnd != s.envStart || uint64(len(cmdline)) != s.argEnd-s.argStart ||
		!bytes.HasSuffix(cmdline, []byte{0}) || bytes.HasSuffix(cmdline, []byte{0, 0})
}

// headless says that the first thread has ended, which is that of the process if there is no other one.
func (s *stat) headless() bool { return s.state == 'Z' || s.state == 'X' || s.state == 'x' }

func (s *stat) ended() bool { return s.headless() && s.threads <= 1 }

func readStat(folder string) (s stat, err error) {
	content, err := read(folder, "stat")
	if err != nil {
		return s, err
	}
	if s, err = parseStat(content); err != nil {
		return s, fmt.Errorf("%s/stat: %w", folder, err)
	}
	return s, nil
}

func parseStat(content []byte) (s stat, err error) {
	// The name is in parentheses and may have any character, parentheses and spaces too.
	opened, closed := bytes.IndexByte(content, '('), bytes.LastIndexByte(content, ')')
	if opened < 0 || closed < opened {
		return s, errors.New("no name in parentheses")
	}
	fields := strings.Fields(string(content[closed+1:]))
	if len(fields) <= startField {
		return s, fmt.Errorf("has %d fields behind the name, and not %d", len(fields), startField+1)
	}
	s.name, s.state = string(content[opened+1:closed]), fields[stateField][0]
	var errs [4]error
	s.parent, errs[0] = strconv.Atoi(fields[parentField])
	s.flags, errs[1] = strconv.ParseUint(fields[flagsField], 10, 64)
	s.threads, errs[2] = strconv.Atoi(fields[threads])
	s.start, errs[3] = strconv.ParseUint(fields[startField], 10, 64)
	for field, to := range map[int]*uint64{argStart: &s.argStart, argEnd: &s.argEnd, envStart: &s.envStart} {
		if len(fields) > field {
			*to, _ = strconv.ParseUint(fields[field], 10, 64) // else it is not known
		}
	}
	return s, errors.Join(errs[:]...)
}

// living is the folder of a thread of a process that has not ended, and what is there: only that tells what the process is.
func living(folder string, s stat) (string, stat, error) {
	if !s.headless() || s.ended() {
		return folder, s, nil
	}
	all, err := os.ReadDir(filepath.Join(folder, "task"))
	if err != nil {
		return "", s, gone(err)
	}
	for _, entry := range all {
		of := filepath.Join(folder, "task", entry.Name())
		if t, err := readStat(of); err == nil && !t.headless() {
			return of, t, nil
		}
	}
	return "", s, guard.ErrEnded
}

// read reads a file of a process, or of a thread, whole.
func read(folder, name string) ([]byte, error) {
	file, err := os.Open(filepath.Join(folder, name))
	if err != nil {
		return nil, gone(err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(content) > maxFile {
		return nil, fmt.Errorf("%s: is longer than %d bytes", file.Name(), maxFile)
	}
	return content, gone(err)
}

// gone makes of an error that a process is not there one that says so.
func gone(err error) error {
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return guard.ErrEnded
	}
	return err
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

// cgroupPaths are all paths, and the one in version 2 or, without one, the longest of those in version 1, which is where a runtime
// has put the process. A path outside of what the Collector sees is none.
func cgroupPaths(content []byte) (path string, all []string) {
	unified := false
	for line := range strings.Lines(string(content)) {
		hierarchy, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controllers, at, ok := strings.Cut(rest, ":")
		if !ok || outside(at) || !strings.HasPrefix(at, "/") {
			return "", nil // what is in this line may be what protects
		}
		if !slices.Contains(all, at) {
			all = append(all, at)
		}
		if hierarchy == "0" && controllers == "" && at != "/" {
			path, unified = at, true
		}
		if len(at) > len(path) && !unified {
			path = at
		}
	}
	return path, all
}

// outside says whether a path is relative to a control group of the Collector's own, as in a namespace of it.
func outside(path string) bool { return path == "/.." || strings.HasPrefix(path, "/../") }

// unifiedPath is the path in version 2; empty: there is none.
func unifiedPath(content []byte) string {
	for line := range strings.Lines(string(content)) {
		if path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			return path
		}
	}
	return ""
}
