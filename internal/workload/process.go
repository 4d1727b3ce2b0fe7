// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Process is what is known of a process. What is empty is not known.
type Process struct {
	// PID is the host's.
	PID uint32
	// Start is when it was started, in clock ticks since boot: a PID with another start is another process.
	Start uint64
	// Executable is the base name of its executable, or, to those who may not see that, the command name that the kernel
	// shows to everybody (15 bytes, and a process may change it).
	Executable string
	Cgroup
	Names
}

// Names are what Kubernetes calls the container that a process runs in.
type Names struct {
	Namespace, Pod, Container string
}

const (
	commLength = 16 // the kernel's, with the newline
	// maxCgroup bounds what is read of a file that is a few hundred bytes long.
	maxCgroup = 64 << 10
	// startField is the 22nd of /proc/PID/stat, counted from the one behind the command name.
	startField = 22 - 3
	deleted    = " (deleted)"
	// hostPIDs is what /proc/self/ns/pid leads to in the PID namespace of the host, on every Linux.
	hostPIDs = "pid:[4026531836]"
)

// sighting is a process that was seen. It keeps /proc/PID/comm open: that file belongs to the process, not to its number,
// so that reading it says in one system call and without an allocation whether the process is still the same.
type sighting struct {
	Process
	comm int // file descriptor
	text [commLength]byte
	now  [commLength]byte // scratch
}

// see looks a process up. A process that is gone or hidden gives nil.
func see(root string, pid uint32) *sighting {
	folder := filepath.Join(root, strconv.FormatUint(uint64(pid), 10))
	comm, err := unix.Open(filepath.Join(folder, "comm"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	s := &sighting{Process: Process{PID: pid}, comm: comm}
	size, _ := unix.Pread(comm, s.text[:], 0) // one that is gone is found out below
	s.Start = startOf(folder)
	s.Executable = executableOf(folder)
	if s.Executable == "" {
		s.Executable = string(bytes.TrimSuffix(s.text[:max(size, 0)], []byte("\n")))
	}
	s.Cgroup = cgroupOf(folder)
	// What was read by number is of this process only if that is still there.
	if s.Start == 0 || !s.alive() {
		s.close()
		return nil
	}
	return s
}

// alive says whether the process is still there, and still runs what it ran.
func (s *sighting) alive() bool {
	clear(s.now[:])
	_, err := unix.Pread(s.comm, s.now[:], 0)
	return err == nil && s.now == s.text
}

func (s *sighting) close() { _ = unix.Close(s.comm) } // it was only read

func startOf(folder string) uint64 {
	content, err := os.ReadFile(filepath.Join(folder, "stat"))
	if err != nil {
		return 0
	}
	// The command name is in parentheses and may have any character, parentheses and spaces too.
	fields := bytes.Fields(content[bytes.LastIndexByte(content, ')')+1:])
	if len(fields) <= startField {
		return 0
	}
	start, err := strconv.ParseUint(string(fields[startField]), 10, 64)
	if err != nil {
		return 0
	}
	return start
}

func executableOf(folder string) string {
	target, err := os.Readlink(filepath.Join(folder, "exe"))
	if err != nil || target == "" {
		return ""
	}
	return strings.TrimSuffix(filepath.Base(target), deleted)
}

func cgroupOf(folder string) Cgroup {
	file, err := os.Open(filepath.Join(folder, "cgroup"))
	if err != nil {
		return Cgroup{}
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxCgroup))
	if err != nil {
		return Cgroup{}
	}
	return ParseCgroup(content)
}

// showsHost says whether /proc shows the processes of the host, by whose PIDs a driver calls them. In a container with
// a PID namespace of its own the same number is another process.
func showsHost() bool {
	target, err := os.Readlink("/proc/self/ns/pid")
	return err == nil && target == hostPIDs
}
