// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
)

var (
	// ErrPermission is wrapped by what Start returns without CAP_BPF and CAP_PERFMON. Nothing is attached then.
	ErrPermission = errors.New("the probes need CAP_BPF and CAP_PERFMON")
	// ErrUnsupported is wrapped by what Start returns where the kernel lacks what the probes are made of.
	ErrUnsupported = errors.New("the kernel does not support the probes: they need Linux 6.6 or newer with BPF and uprobes")
	// ErrMemory is wrapped by what Start returns where Options.MaxEntries take more memory than there is.
	ErrMemory = errors.New("too many for the kernel's memory")
	// ErrUnsafe is wrapped by what Start returns where processes may crash by the probes, unless Options.UnsafeKernel is set.
	ErrUnsafe = errors.New("a process with a seccomp filter may crash by the probes")
	// ErrNamespace is wrapped by what Start returns where Options.ProcRoot has other process ids than the kernel.
	ErrNamespace = errors.New("the probes need the proc file system of the initial PID namespace: share the host's (hostPID) or mount its /proc")
	// ErrClosed is what Scan and Read return after Close.
	ErrClosed = errors.New("the probe is closed")
)

// EntryBytes is what one of Options.MaxEntries takes of the kernel's memory.
const EntryBytes = 345

// DefaultMaxEntries is the limit of live allocations, of processes and of threads.
const DefaultMaxEntries = 65536

// Options say what is probed and who is told.
type Options struct {
	// MaxEntries limits each of live allocations, processes and threads that call CUDA. 0: DefaultMaxEntries. What comes
	// beyond is counted in Drops. Each takes EntryBytes of the kernel's memory from the start, and a process 2 KB more. One process
	// may have seven eighths of the live allocations, so that those of others can be counted when it has too many.
	MaxEntries uint32
	// Libraries are further shared libraries with CUDA in them, such as libtorch_cuda.so*: patterns as of path.Match, of the
	// whole path where there is a / in it, else of the file's name. libcudart and libcuda need not be named, nor do
	// executables that have the runtime linked in, which their symbols tell.
	Libraries []string
	// ProcRoot is where the proc file system of the initial PID namespace is. Empty: /proc.
	ProcRoot string
	// UnsafeKernel probes also where ErrUnsafe would be returned.
	UnsafeKernel bool
	// Launches counts kernel launches and their durations, too.
	Launches bool
	// Changed is told, at the latest some milliseconds after, that a process's live bytes are others: not of each call, but
	// always of the last. May be nil.
	Changed func(Change)
	// Gone is told once of each process that was counted and has ended or executed another program. May be nil. Both are called
	// by one goroutine that holds no lock; they must not call Close.
	Gone func(pid int, startTime uint64)
	// Log is given what goes wrong with one file or process and does not stop the rest, once for each. May be nil.
	Log func(format string, args ...any)
}

// Change says what a process holds now.
type Change struct {
	PID int
	// StartTime tells processes of one PID apart, as in Process.
	StartTime uint64
	// Live is bytes, and Managed those of them that may be on the host.
	Live, Managed uint64
	// At is when the last of the calls returned that made Live what it is, in Unix nanoseconds.
	At int64
}

// The histograms of Process. Both have exponential buckets as OTLP's: bucket i counts what is in
// (base^(offset+i), base^(offset+i+1)] with base = 2^(2^-scale). What is below the first is in the first, what is above the
// last in the last.
const (
	// SizeScale and SizeOffset are of Sizes, in bytes: the first bucket is (0.5, 1], the last ends at 128 TiB.
	SizeScale, SizeOffset, SizeBuckets = 0, -1, 48
	// LaunchScale and LaunchOffset are of LaunchDurations, in seconds (not nanoseconds): 2^-21 s (477 ns) to 8 s, each 9 % wide.
	LaunchScale, LaunchOffset, LaunchBuckets = 3, -21 << LaunchScale, 24 << LaunchScale
)

// Process is what one process has done since it was first seen. Counters never fall; Live = Allocated − Freed − Released.
type Process struct {
	PID int
	// StartTime is field 22 of /proc/PID/stat, in clock ticks (10 ms) since boot.
	StartTime uint64
	// ID is another one for each process, and for each program that a process executes.
	ID uint64
	// Ended processes are read once, with their last counters.
	Ended bool

	// Live, Allocated, Freed and Released are bytes. Released went with the process or with a context, without a free.
	Live, Allocated, Freed, Released uint64
	// Managed is that part of Live which moves between devices and the host as it is used, and may be more than any device has.
	Managed uint64
	// Allocations and Frees are calls that succeeded.
	Allocations, Frees uint64
	// Failures are allocations that returned an error, FreeFailures frees that did.
	Failures, FreeFailures uint64
	// UnknownFrees succeeded, but what they freed was allocated before the probes came, was not counted (see Drops), or had
	// been freed already. A context that went counts as one where it cannot be told what was in it.
	UnknownFrees uint64
	// Missed are allocations for which there was no room (see Drops.Live). They are in no other counter; their frees are unknown.
	Missed uint64
	// Unreturned are calls that were left without returning, as by longjmp: nobody knows what they did.
	Unreturned uint64
	// Sizes of Allocations.
	Sizes [SizeBuckets]uint64

	// Launches are kernel launches that succeeded, and LaunchSum the nanoseconds that they took, from the call to its return:
	// the time of the host, with that of the probes themselves (microseconds).
	Launches, LaunchSum uint64
	// LaunchDurations of Launches.
	LaunchDurations [LaunchBuckets]uint64
}

// Drops is what was not counted, by reason, since Start.
type Drops struct {
	// Live are the Missed of all processes.
	Live uint64
	// Processes are calls of processes beyond MaxEntries, Threads those of threads.
	Processes, Threads uint64
	// Unreadable are calls whose result could not be read from the process's memory.
	Unreadable uint64
	// Ring are changes that Changed was not told of, because the ring buffer was full. Read has them.
	Ring uint64
	// UnknownFrees and Unreturned are those of all processes.
	UnknownFrees, Unreturned uint64
}

// ScanResult says what is attached after a Scan.
type ScanResult struct {
	// Processes that have a probed file mapped, and how many of them had it mapped when the probes came: what these had allocated by
	// then is not known.
	Processes, Late int
	// Files that probes are attached to, and the Functions in them. A file that containers see by several inodes is one.
	Files, Functions int
	// Attached and Detached files in this scan.
	Attached, Detached int
	// Failed are libraries that processes have mapped and that could not be attached to; Err says why of one of them. They are
	// tried again.
	Failed int
	Err    error
	// Unreadable are processes whose maps, and executables that, this process may not read, so that it cannot be known whether
	// they use CUDA; Hidden says why of one of them. See MayLook. One or two are nothing unusual.
	Unreadable int
	Hidden     error
}

// Probe is the probes and what they counted. Its methods may be called at the same time.
type Probe struct {
	opts   Options
	kernel countersObjects
	always []link.Link // what is attached from Start to Close

	mu      sync.Mutex // of what follows
	closed  bool
	scanner scanner
	reader  reader
	swept   uint64
	// attachments is the number of the last one.
	attachments uint32

	listener listener
}

// Start loads the programs. Nothing of CUDA is probed before the first Scan.
func Start(opts Options) (*Probe, error) {
	if opts.MaxEntries == 0 {
		opts.MaxEntries = DefaultMaxEntries
	}
	if opts.ProcRoot == "" {
		opts.ProcRoot = "/proc"
	}
	for _, pattern := range opts.Libraries {
		if _, err := path.Match(pattern, ""); err != nil {
			return nil, fmt.Errorf("library %q: %w", pattern, err)
		}
	}
	if err := initialNamespace(opts.ProcRoot); err != nil {
		return nil, err
	}
	if !opts.UnsafeKernel {
		if err := safe(); err != nil {
			return nil, err
		}
	}
	if err := affordable(opts.MaxEntries); err != nil {
		return nil, err
	}
	p := &Probe{
		opts: opts,
		scanner: scanner{
			procReader: procReader{root: opts.ProcRoot},
			patterns:   append(slices.Clone(libraries), opts.Libraries...),
			processes:  map[int]*mapped{}, files: map[fileID]*file{},
		},
		listener: listener{claimed: map[uint32]struct{}{}},
	}
	if err := p.load(); err != nil {
		_ = p.Close()
		return nil, explain(err)
	}
	return p, nil
}

// load puts the programs into the kernel, and attaches those that tell of the end of processes.
func (p *Probe) load() error {
	spec, err := loadCounters()
	if err != nil {
		return err
	}
	notify, every := p.opts.Changed != nil || p.opts.Gone != nil, uint64(window)
	if p.opts.Changed == nil {
		every = math.MaxUint64 // the end alone
	}
	for _, m := range []string{countersMapIdentities, countersMapProcesses, countersMapThreads, countersMapLive} {
		spec.Maps[m].MaxEntries = p.opts.MaxEntries
	}
	if notify {
		spec.Maps[countersMapNotes].MaxEntries = ringSize
	}
	bounds, share := launchBounds(), uint64(p.opts.MaxEntries-p.opts.MaxEntries/8)
	if err := errors.Join(
		spec.Variables[countersVarNotify].Set(notify),
		spec.Variables[countersVarWindow].Set(every),
		spec.Variables[countersVarShare].Set(share),
		spec.Variables[countersVarLaunchBounds].Set(bounds[:]),
	); err != nil {
		return err
	}
	if err := spec.LoadAndAssign(&p.kernel, nil); err != nil {
		return err
	}
	for name, program := range map[string]*ebpf.Program{"sched_process_exit": p.kernel.ProcessExit, "sched_process_exec": p.kernel.ProcessExec} {
		l, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: name, Program: program})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		p.always = append(p.always, l)
	}
	if err := features.HaveBPFLinkUprobeMulti(); err != nil {
		return err
	}
	if !notify {
		return nil
	}
	if p.listener.ring, err = ringbuf.NewReader(p.kernel.Notes); err != nil {
		return err
	}
	p.listener.done = make(chan struct{})
	go p.listen()
	return nil
}

// launchBounds are the bounds between the buckets of LaunchDurations in nanoseconds, rounded down: bound i is below bucket i.
func launchBounds() (bounds [256]uint64) {
	for i := range bounds {
		bounds[i] = math.MaxUint64
		if i < LaunchBuckets {
			bounds[i] = uint64(1e9 * math.Exp2(float64(LaunchOffset+i)/(1<<LaunchScale)))
		}
	}
	return bounds
}

// Close detaches all probes and waits until Changed and Gone have returned, so it must not be called by them. Processes go on.
func (p *Probe) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	for _, f := range p.scanner.files {
		f.close()
	}
	p.mu.Unlock()
	var errs []error
	for _, l := range p.always {
		errs = append(errs, l.Close())
	}
	if p.listener.done != nil {
		errs = append(errs, p.listener.ring.Close())
		<-p.listener.done
	}
	if p.kernel.Enter != nil {
		errs = append(errs, p.kernel.Close())
	}
	return errors.Join(errs...)
}
