// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/guard"
	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/policy"
	"github.com/otelcol-llm/otelcol-llm/internal/workload"
)

// Options say where a Table looks.
type Options struct {
	// CgroupRoot is where control groups of version 2 are mounted.
	CgroupRoot string
	// Resolver knows containers and pods.
	Resolver *workload.Resolver
	// Proc is where processes are; empty: /proc.
	Proc string
}

// Table is the processes of this machine. It is for one goroutine.
type Table struct {
	opts   Options
	boot   func() (int64, error) // when the machine was booted, in Unix nanoseconds, by the clock as it is set now
	booted atomic.Int64          // the same, as it was found last
	// nested says that the Collector has control groups of its own: paths tell nothing of where a process is.
	nested bool
}

const (
	procRoot = "/proc"
	// ticksPerSecond is USER_HZ, the same on every architecture that a GPU is found on.
	ticksPerSecond = 100
	// untouchable is the oom_score_adj from which on downward a process is one that the machine cannot do without. A pod of the
	// class Guaranteed has -997.
	untouchable = -998
)

// NewTable returns a Table.
func NewTable(o Options) (*Table, error) {
	if o.Proc == "" {
		o.Proc = procRoot
	}
	t := &Table{opts: o, boot: boot}
	booted, err := t.boot()
	if err != nil {
		return nil, fmt.Errorf("the time since boot: %w", err)
	}
	t.booted.Store(booted)
	first, err := read(t.folder(1), "cgroup")
	t.nested = err != nil || bytes.Contains(first, []byte(":/..")) // what has started all is at the top, or above it
	return t, nil
}

func boot() (int64, error) {
	booted := int64(math.MaxInt64)
	for range 3 { // of which the earliest is right: time may pass between the two clocks
		var since unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &since); err != nil {
			return 0, err
		}
		booted = min(booted, time.Now().UnixNano()-since.Nano())
	}
	return booted, nil
}

// folder is where a process is found.
func (t *Table) folder(pid int) string { return filepath.Join(t.opts.Proc, strconv.Itoa(pid)) }

// Started is the time, in Unix nanoseconds, of a start in clock ticks since boot; 0 of 0. It is by the clock as it is set now. It may be
// called by several goroutines.
func (t *Table) Started(ticks uint64) int64 {
	if ticks == 0 {
		return 0
	}
	booted := t.booted.Load()
	// What is measured wavers. More than a second is a clock that was set.
	if at, err := t.boot(); err == nil && (time.Duration(at-booted)).Abs() > time.Second {
		t.booted.Store(at)
		booted = at
	}
	return booted + int64(ticks)*int64(time.Second/ticksPerSecond)
}

// Start is the start of a process in clock ticks since boot; 0: it is not there, or that is not known.
func Start(pid int) uint64 {
	s, err := readStat(filepath.Join(procRoot, strconv.Itoa(pid)))
	if err != nil || s.ended() {
		return 0
	}
	return s.start
}

// Ended says whether a process is certain to be there no more. Of one without a start, another one may have its number.
func Ended(pid int, start uint64) bool {
	s, err := readStat(filepath.Join(procRoot, strconv.Itoa(pid)))
	if err != nil {
		return errors.Is(err, guard.ErrEnded)
	}
	return s.ended() || start != 0 && s.start != start
}

// Ancestors are a process and those that have started it, without PID 1.
func Ancestors(pid int) (all []int) {
	for pid > 1 && len(all) < 64 {
		all = append(all, pid)
		s, err := readStat(filepath.Join(procRoot, strconv.Itoa(pid)))
		if err != nil {
			break
		}
		pid = s.parent
	}
	return all
}

// Look says what is known of a process, which holds memory of a device. What cannot be found out stays empty; one that is not there
// is guard.ErrEnded.
func (t *Table) Look(pid int, device string) (policy.Facts, error) {
	s, err := readStat(t.folder(pid))
	if err != nil {
		return policy.Facts{}, err
	}
	folder, alive, err := living(t.folder(pid), s)
	if err != nil {
		return policy.Facts{}, err
	}
	f := policy.Facts{
		PID: pid, Start: s.start, Started: t.Started(s.start), Ended: s.ended(), Kernel: s.flags&kernelThread != 0, Comm: s.name, UID: -1,
	}
	if target, err := os.Readlink(filepath.Join(folder, "exe")); err == nil {
		f.Path = strings.TrimSuffix(target, deleted)
	}
	if content, err := read(folder, "cmdline"); err == nil {
		f.Command = strings.TrimSpace(string(bytes.ReplaceAll(content, []byte{0}, []byte{' '})))
		f.Retitled = alive.retitled(content)
	}
	if content, err := read(folder, "status"); err == nil {
		f.UID = realUID(content)
	}
	if content, err := read(folder, "cgroup"); err == nil {
		if !t.nested {
			f.Cgroup, f.Cgroups = cgroupPaths(content)
		}
		c := workload.ParseCgroup(content)
		f.ContainerID, f.PodUID = c.ContainerID, c.PodUID
	}
	f.Critical = isNeeded(read(folder, "oom_score_adj"))
	if f.PodUID != "" {
		if p := t.opts.Resolver.Resolve(uint32(pid), workload.Device{UUID: device}, time.Now().UnixNano()); p.Start == s.start {
			f.Namespace, f.Pod, f.Container = p.Namespace, p.Pod, p.Container
		}
	}
	// What was read by number is of this process only if that is still there.
	if again, err := readStat(t.folder(pid)); err != nil || again.start != s.start {
		return policy.Facts{}, guard.ErrEnded
	}
	return f, nil
}

// isNeeded reads an oom_score_adj. Without it, nobody knows whether the machine can do without the process.
func isNeeded(content []byte, err error) bool {
	score, malformed := strconv.Atoi(strings.TrimSpace(string(content)))
	return err != nil || malformed != nil || score <= untouchable
}
