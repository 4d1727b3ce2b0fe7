// SPDX-License-Identifier: Apache-2.0

package workload

// give notes that a container was given a device: what it has is told of one that has one only.
func (o *owners) give(device string, to Names) {
	before, known := o.given[to]
	switch {
	case known && before != device:
		o.given[to] = ""
	case !known && len(o.given) < maxDevices:
		o.given[to] = device
	}
}

// Device returns the only device that the kubelet has given to the container of a process that Resolve has named: the UUID of
// a GPU or of a MIG device, or another name that the kubelet's plugin has for it. It is empty where that is not certain, and
// where the container has several.
func (r *Resolver) Device(p Process) string {
	if r.opts.Pods == nil || p.Container == "" {
		return ""
	}
	known := r.opts.Pods.known.Load()
	if known == nil {
		return ""
	}
	// An answer from before the process was there may be about another pod of the same name.
	if known.asked <= p.Start {
		r.opts.Pods.Hurry()
		return ""
	}
	return known.given[p.Names]
}
