// SPDX-License-Identifier: Apache-2.0

package leak

import "cmp"

// Kind is what a point tells.
type Kind uint8

const (
	// Used is what the driver counts for a process.
	Used Kind = iota
	// Live is what a process has allocated and not freed.
	Live
	// Missed is how many of its calls were missed, of which Live is the sum.
	Missed
	// Limit and DeviceUsed are how much memory a device has and how much of it is in use.
	Limit
	DeviceUsed
	// Unattributed is what is in use by no visible process.
	Unattributed
	// Running are requests that are worked on, Cache is the share of the KV cache that is in use, Served are requests that were finished
	// since the last point.
	Running
	Cache
	Served
	// Engines, Contexts and Blocks are how many more of them were created than destroyed, +1 or -1.
	Engines
	Contexts
	Blocks
	// Burn is the burn rate of a promise, Remaining the share of its error budget that is left, below 0 where it is overspent.
	Burn
	Remaining
	// Reserved is what the driver keeps of a device's memory for itself, besides what is in use. It stands here because kinds are written in checkpoints.
	Reserved
	kinds
)

// OfDevice reports whether it is of a device as a whole.
func (k Kind) OfDevice() bool { return k >= Limit && k <= Unattributed || k == Reserved }

// OfTraffic reports whether it is of what a process does, or makes.
func (k Kind) OfTraffic() bool { return k >= Running && k <= Blocks }

// OfPromise reports whether it is of a promise.
func (k Kind) OfPromise() bool { return k == Burn || k == Remaining }

// names reports whether a place says what a point of the kind is about.
func (k Kind) names(w *Where) bool {
	switch {
	case k <= Missed:
		return w.PID != ""
	case k.OfDevice():
		return w.Device != ""
	case k.OfPromise():
		return w.SLO != ""
	default:
		return w.PID != "" || w.Device != "" || w.Names.any()
	}
}

// ID is a process on a host; without PID, it is a device, of which Device is the name.
type ID struct {
	_                 struct{} `cbor:",toarray"`
	Host, PID, Device string
}

// Where is what a point is about. It is plain values, for checkpoints, so the order of the fields is part of the format.
type Where struct {
	_                 struct{} `cbor:",toarray"`
	Host, PID, Device string
	Executable        string
	Service           string // service.name, for traffic
	Names             Names
	Labels            []Label // container, pod, tenant …; in order
	Series            uint64  // tells what is to be added up of one process apart
	Instance          uint64  // of traffic: the engine that tells it
	SLO, Window       string  // of a promise's budget: slo_id, and of its burn rate: the span
}

// Label is an attribute of a process.
type Label struct {
	_          struct{} `cbor:",toarray"`
	Key, Value string
	Resource   bool // it stands on the resource of results
}

// Names are what a process is called besides its process id, "" where that is not known: traffic finds it by them.
type Names struct {
	_                 struct{} `cbor:",toarray"`
	Container, PodUID string
	Namespace, Pod    string
	Cluster           string
	// Relation are the attributes of a relation that traffic and processes have in common, as one text; "" without one.
	Relation string
}

func (n *Names) any() bool {
	return n.Container != "" || n.PodUID != "" || n.Namespace != "" && n.Pod != "" || n.Relation != ""
}

// with is n, and what another has that is not known of it or has changed.
func (n *Names) with(other *Names) Names {
	return Names{
		Container: cmp.Or(other.Container, n.Container), PodUID: cmp.Or(other.PodUID, n.PodUID), Namespace: cmp.Or(other.Namespace, n.Namespace),
		Pod: cmp.Or(other.Pod, n.Pod), Cluster: cmp.Or(other.Cluster, n.Cluster), Relation: cmp.Or(other.Relation, n.Relation),
	}
}

// contradicts reports whether the two cannot be names of one process.
func (n *Names) contradicts(other *Names) bool {
	return differ(n.Container, other.Container) || differ(n.PodUID, other.PodUID) || differ(n.Namespace, other.Namespace) || differ(n.Pod, other.Pod) ||
		differ(n.Cluster, other.Cluster)
}

// differ reports whether both are known and not the same.
func differ(a, b string) bool { return a != "" && b != "" && a != b }
