// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// refreshEvery is after how many scans the maps of a process are read again though its size is the same.
	refreshEvery = 30
	// retryAtMost is after how many scans, at most, a file is tried again that could not be attached to.
	retryAtMost = 64
)

// scanner remembers what was mapped at the last scan. Reading the maps of every process is what would cost: they are read
// when a process is new or its address space has another size than at the last scan.
type scanner struct {
	procReader
	patterns  []string
	scans     int
	pids      []int
	processes map[int]*mapped
	files     map[fileID]*file
}

// mapped is what a process has mapped.
type mapped struct {
	seen  int // scans when it was last there
	late  bool
	size  []byte
	files []use
}

// use is how a process has mapped a file.
type use struct {
	*file
	span, path string
}

// file is an executable or a library that somebody maps: attached to, or found to have nothing, or to be tried again.
type file struct {
	id      fileID
	pid     int  // of a process that maps it
	use     use  // by that one
	library bool // by its name; else an executable that may have a runtime in it
	seen    int
	since   int // the scan in which the probes came
	*attachment
	twin         *file // has the probes for this one
	err          error
	failures, at int // how often attaching failed, and at which scan to try again
}

func (f *file) attached() bool { return f.attachment != nil && f.functions > 0 }

// itself tells whether the probes are on this file, and not on its twin.
func (f *file) itself() bool { return f.attached() && f.twin == nil }

// silent errors are about what most likely has no CUDA in it, and may not be read, or is not there any more.
func (f *file) silent() bool { return !f.library && errors.As(f.err, new(*os.PathError)) }

// Scan finds libraries and executables that processes have mapped, attaches to those that are new, and detaches from those
// that nobody maps any more. Allocations of before are not seen, so call it every second or so. What it returns as an error
// is that it could do nothing; a file that cannot be attached to is in the result.
func (p *Probe) Scan() (ScanResult, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ScanResult{}, ErrClosed
	}
	s := &p.scanner
	s.scans++
	var result ScanResult
	if err := s.list(); err != nil {
		return result, err
	}
	for _, pid := range s.pids {
		m := s.processes[pid]
		if m == nil {
			m = &mapped{}
			s.processes[pid] = m
		}
		m.seen = s.scans
		if err := s.look(pid, m); err != nil {
			result.hide(fmt.Errorf("process %d: maps: %w", pid, err))
		}
	}
	for pid, m := range s.processes {
		if m.seen != s.scans {
			delete(s.processes, pid)
			continue
		}
		probed := false
		for _, u := range m.files {
			u.seen, u.pid, u.use = s.scans, pid, u
			p.try(u.file, &result)
			if u.attached() {
				probed = true
				m.late = m.late || u.since == s.scans
			}
		}
		switch {
		case !probed:
			m.late = false
		case m.late:
			result.Late++
			fallthrough
		default:
			result.Processes++
		}
	}
	if err := p.pair(&result); err != nil {
		return result, err
	}
	for id, f := range s.files {
		if f.seen != s.scans {
			if f.itself() {
				f.close()
				result.Detached++
			}
			delete(s.files, id)
			continue
		}
		if f.itself() {
			result.Files++
			result.Functions += f.functions
		} else if f.err != nil && f.silent() {
			result.hide(f.err)
		} else if f.err != nil {
			result.Failed++
			result.Err = f.err
		}
	}
	return result, p.sweep()
}

// try attaches to a file, unless that was done or it is not yet time to try again.
func (p *Probe) try(f *file, result *ScanResult) {
	s := &p.scanner
	if f.attachment != nil || s.scans < f.at {
		return
	}
	opened, err := openMapped(s.root, f.pid, f.id, f.use.span, f.use.path)
	if err == nil {
		f.attachment, err = p.attach(opened, f.library)
		_ = opened.Close()
	}
	if err != nil {
		f.err = fmt.Errorf("%s of process %d: %w", f.use.path, f.pid, err)
		if f.failures == 0 && !f.silent() && p.opts.Log != nil {
			p.opts.Log("no probes on %v", f.err)
		}
		f.at = s.scans + min(1<<min(f.failures, 16), retryAtMost)
		f.failures++
		return
	}
	f.err, f.since = nil, s.scans
	if f.attached() {
		result.Attached++
	}
}

// pair leaves probes on one of several files that are the same one below: each overlay that has a layer shows its files with
// inodes of its own. Which ones are the same the kernel has seen when a call met two probes in one place.
func (p *Probe) pair(result *ScanResult) error {
	s := &p.scanner
	// A file that goes hands over to those that it stood for.
	for _, f := range s.files {
		if f.twin != nil && f.seen == s.scans && f.twin.seen != s.scans {
			f.twin, f.attachment, f.at = nil, nil, 0
			p.try(f, result)
		}
	}
	twins := map[uint32]uint32{}
	if err := newBatch[uint32, uint32]().each(p.kernel.Twins, func(number uint32, of *uint32) { twins[number] = *of }); err != nil {
		return fmt.Errorf("reading twins: %w", err)
	}
	if len(twins) == 0 {
		return nil
	}
	numbers := map[uint32]*file{}
	for _, f := range s.files {
		if f.itself() {
			numbers[f.number] = f
		}
	}
	for number, of := range twins {
		f, twin := numbers[number], numbers[of]
		if f != nil && twin != nil && twin.twin == nil && f.twin == nil && twin.seen == s.scans {
			f.close()
			f.twin = twin
			for _, other := range s.files {
				if other.twin == f {
					other.twin = twin
				}
			}
		}
		_ = p.kernel.Twins.Delete(number)
	}
	return nil
}

// list fills pids.
func (s *scanner) list() error {
	dir, err := os.Open(s.root)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	s.pids = s.pids[:0]
	for _, name := range names {
		if name[0] < '1' || name[0] > '9' {
			continue
		}
		if pid, err := strconv.Atoi(name); err == nil {
			s.pids = append(s.pids, pid)
		}
	}
	return nil
}

// hide counts a process that may not be looked at.
func (r *ScanResult) hide(err error) {
	r.Unreadable++
	if r.Hidden == nil {
		r.Hidden = err
	}
}

// look finds out what a process has mapped, when that may have changed, and says why it may not.
func (s *scanner) look(pid int, m *mapped) error {
	size, err := s.read(pid, "statm")
	if err != nil {
		m.files = m.files[:0]
		return nil // it has ended
	}
	size, _ = field(size)
	if bytes.Equal(size, m.size) && (s.scans+pid)%refreshEvery != 0 {
		return nil
	}
	if len(size) == 1 && size[0] == '0' {
		if len(m.files) > 0 && s.threads(pid) > 1 {
			return nil // its first thread has ended, and the others have the memory that it had
		}
		m.size = append(m.size[:0], size...)
		m.files = m.files[:0]
		return nil // of the kernel, or ended
	}
	// The size first: what is mapped in between is found by the next scan.
	m.size = append(m.size[:0], size...)
	maps, err := s.read(pid, "maps")
	if err != nil {
		m.size = m.size[:0]
		m.files = m.files[:0]
		if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
			return err
		}
		return nil // it has ended
	}
	m.files = m.files[:0]
	parseMaps(maps, func(x mapping) {
		f := s.files[x.file]
		if f == nil {
			library, executable := s.kindOf(x.path)
			if !library && !executable {
				return
			}
			f = &file{id: x.file, library: library}
			s.files[x.file] = f
		}
		if len(m.files) == 0 || m.files[len(m.files)-1].file != f {
			m.files = append(m.files, use{f, string(x.span), string(x.path)})
		}
	})
	return nil
}

// threads is how many a process has, those that are not waited for yet included.
func (s *scanner) threads(pid int) int {
	all, _ := os.ReadDir(s.root + "/" + strconv.Itoa(pid) + "/task")
	return len(all)
}

// kindOf tells libraries with a name that is known from what is no library at all, and so may be an executable. Others are
// neither.
func (s *scanner) kindOf(name []byte) (library, executable bool) {
	for _, prefix := range []string{"/memfd:", "/dev/", "/SYSV", "/[aio]"} {
		if bytes.HasPrefix(name, []byte(prefix)) {
			return false, false
		}
	}
	base := name[bytes.LastIndexByte(name, '/')+1:]
	for _, pattern := range s.patterns {
		of := base
		if strings.Contains(pattern, "/") {
			of = name
		}
		if ok, _ := path.Match(pattern, string(of)); ok {
			return true, false
		}
	}
	return false, !bytes.HasSuffix(base, []byte(".so")) && !bytes.Contains(base, []byte(".so."))
}
