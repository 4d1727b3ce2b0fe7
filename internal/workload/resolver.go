// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"time"
)

// Options say where a Resolver looks. What is zero has the default that stands beside it.
type Options struct {
	// ProcRoot is where the host's /proc is mounted. Empty: /proc, if the Collector is in the PID namespace of the host.
	ProcRoot string
	// KubeletLogs is the folder of the links to containers' logs, /var/log/containers. Empty: none.
	KubeletLogs string
	// Pods knows who holds which device. Nil: nobody does. It is not closed with the Resolver.
	Pods *Pods
	// MaxProcesses is how many processes of the machine are remembered (1024), each with one open file. One beyond is looked
	// up anew each time, and counted.
	MaxProcesses int
	// Expiry is how long a process that nobody asks for is remembered, and how often one is looked up anew (5m).
	Expiry time.Duration
}

// Resolver says whose processes are. It is for one goroutine.
type Resolver struct {
	opts    Options
	proc    string // empty: not the host's, so nothing is known
	logs    logs
	seen    map[uint32]*entry
	holders map[podName]holder
	swept   int64
	beyond  uint64
}

// entry is a process that is remembered. Times are in Unix nanoseconds.
type entry struct {
	*sighting
	read, asked int64
	named       bool // by the kubelet's logs, for ever
}

type podName struct{ namespace, pod string }

// holder is who was seen on the devices that only this pod holds.
type holder struct {
	by witness
	// rival is of another pod, which uses a device that it was not given. Its pid is 0 when there is none.
	rival witness
	// crowded is when a process was there for which there was no room, and which may be of another pod.
	crowded int64
}

// witness is a process by which a pod was seen.
type witness struct {
	pid   uint32
	start uint64
	uid   string // the pod's
}

const (
	defaultMaxProcesses = 1024
	defaultExpiry       = 5 * time.Minute
	sweepEvery          = 10 * time.Second
)

// NewResolver returns a Resolver, which Close ends.
func NewResolver(opts Options) *Resolver {
	r := &Resolver{opts: opts, proc: opts.ProcRoot, logs: logs{folder: opts.KubeletLogs}, seen: map[uint32]*entry{}, holders: map[podName]holder{}}
	if r.proc == "" && showsHost() {
		r.proc = "/proc"
	}
	if r.opts.MaxProcesses <= 0 {
		r.opts.MaxProcesses = defaultMaxProcesses
	}
	r.opts.Expiry = orDefault(opts.Expiry, defaultExpiry)
	return r
}

// SeesHost says whether processes can be known at all: false in a container with PIDs of its own and no ProcRoot.
func (r *Resolver) SeesHost() bool { return r.proc != "" }

// Len is the number of processes that are remembered.
func (r *Resolver) Len() int { return len(r.seen) }

// Beyond is how often a process was looked up for which there was no room.
func (r *Resolver) Beyond() uint64 { return r.beyond }

// Close forgets everything.
func (r *Resolver) Close() {
	for pid := range r.seen {
		r.forget(pid)
	}
	clear(r.holders)
}

// Resolve returns what is known of a process that uses a device, at now in Unix nanoseconds. For a process that was seen
// before it costs a system call and no allocation. A process that is not known has its PID and nothing else.
func (r *Resolver) Resolve(pid uint32, device Device, now int64) Process {
	r.sweep(now)
	e := r.lookUp(pid, now)
	if e == nil {
		return Process{PID: pid}
	}
	e.asked = now
	process := e.Process
	if !e.named {
		process.Names = r.namesOf(e, device, now)
	}
	if r.seen[pid] != e { // beyond the limit
		e.close()
	}
	return process
}

// lookUp returns the process as it is now, from memory if it is still the same.
func (r *Resolver) lookUp(pid uint32, now int64) *entry {
	e := r.seen[pid]
	if e != nil && (e.asked == now || now-e.read < int64(r.opts.Expiry) && e.alive()) {
		return e
	}
	if e != nil {
		r.forget(pid)
	}
	if r.proc == "" {
		return nil
	}
	s := see(r.proc, pid)
	if s == nil {
		return nil
	}
	e = &entry{sighting: s, read: now}
	if len(r.seen) >= r.opts.MaxProcesses {
		r.beyond++
	} else {
		r.seen[pid] = e
	}
	return e
}

// namesOf returns what Kubernetes calls the container that a process runs in, if that is certain.
func (r *Resolver) namesOf(e *entry, device Device, now int64) Names {
	if e.PodUID == "" {
		return Names{}
	}
	if e.ContainerID != "" {
		if names, ok := r.logs.of(e.ContainerID, now); ok {
			e.Names, e.named = names, true
			return names
		}
	}
	if r.opts.Pods == nil {
		return Names{}
	}
	known := r.opts.Pods.known.Load()
	if known == nil {
		return Names{}
	}
	// An answer from before the process was there may be about another pod.
	if known.asked <= e.Start {
		r.opts.Pods.Hurry()
		return Names{}
	}
	owner, ok := known.owner(device)
	if !ok || owner.Shared || !r.holds(owner, e, now) {
		return Names{}
	}
	return owner.Names
}

// holds says whether the process is taken for one of the pod that holds a device. A pod that was not given the device can use it
// all the same (NVIDIA_VISIBLE_DEVICES=all); when two are seen, neither is named. When the stranger is there alone, nobody can tell.
func (r *Resolver) holds(owner Owner, e *entry, now int64) bool {
	key, seen := podName{owner.Namespace, owner.Pod}, witness{e.PID, e.Start, e.PodUID}
	h := r.holders[key]
	remembered := r.seen[e.PID] == e
	switch {
	case !remembered && (h.by.uid != seen.uid || !r.present(h.by)):
		h.crowded = now // nobody would find it again, to hold it against others
	case !remembered:
	case h.by.uid == seen.uid, !r.present(h.by): // also the first, and a pod that has taken the place of one of the same name
		h.by = seen
	default:
		h.rival = seen
	}
	if h.rival.uid == h.by.uid || !r.present(h.rival) {
		h.rival = witness{}
	}
	r.holders[key] = h
	return h.rival.pid == 0 && !r.crowded(h, now)
}

// crowded says whether somebody else may have been there lately.
func (r *Resolver) crowded(h holder, now int64) bool {
	return h.crowded != 0 && now-h.crowded < int64(r.opts.Expiry)
}

// present says whether a process is remembered and alive.
func (r *Resolver) present(w witness) bool {
	e := r.seen[w.pid]
	return e != nil && e.Start == w.start && e.alive()
}

// sweep forgets what nobody asks for any longer.
func (r *Resolver) sweep(now int64) {
	if now-r.swept < int64(sweepEvery) {
		return
	}
	r.swept = now
	for pid, e := range r.seen {
		if now-e.asked >= int64(r.opts.Expiry) || !e.alive() {
			r.forget(pid)
		}
	}
	for key, h := range r.holders {
		if !r.present(h.by) && !r.crowded(h, now) {
			delete(r.holders, key)
		}
	}
}

func (r *Resolver) forget(pid uint32) {
	r.seen[pid].close()
	delete(r.seen, pid)
}
