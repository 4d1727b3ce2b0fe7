// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// attachment is the probes on one file.
type attachment struct {
	number    uint32 // of the file, in the cookies
	links     []link.Link
	functions int
}

// attach puts probes on all functions in a file that this package knows. A file without any gives none, and so does one that
// is not an ELF file, unless it is a library.
func (p *Probe) attach(file *os.File, library bool) (*attachment, error) {
	found, err := functionsIn(file)
	if err != nil {
		if library {
			return nil, err
		}
		return &attachment{}, nil
	}
	p.attachments++
	var memory, launches link.UprobeMultiOptions
	for _, f := range found {
		to := &memory
		if f.kind == launch {
			if !p.opts.Launches {
				continue
			}
			to = &launches
		}
		to.Addresses = append(to.Addresses, f.offset)
		to.Cookies = append(to.Cookies, uint64(f.kind)|uint64(p.attachments)<<32)
	}
	a := &attachment{number: p.attachments, functions: len(memory.Addresses) + len(launches.Addresses)}
	if a.functions == 0 {
		return a, nil
	}
	executable, err := link.OpenExecutable(selfFD(file.Fd()))
	if err != nil {
		return nil, err
	}
	for _, pair := range []struct {
		what         *link.UprobeMultiOptions
		enter, leave *ebpf.Program
	}{
		{&memory, p.kernel.Enter, p.kernel.Leave},
		{&launches, p.kernel.LaunchEnter, p.kernel.LaunchLeave},
	} {
		if len(pair.what.Addresses) == 0 {
			continue
		}
		// In this order: a return without its entry is ignored, an entry would wait for its return.
		leave, err := executable.UretprobeMulti(nil, pair.leave, pair.what)
		if err != nil {
			a.close()
			return nil, fmt.Errorf("return probes on %d functions: %w", len(pair.what.Addresses), err)
		}
		a.links = append(a.links, leave)
		enter, err := executable.UprobeMulti(nil, pair.enter, pair.what)
		if err != nil {
			a.close()
			return nil, fmt.Errorf("probes on %d functions: %w", len(pair.what.Addresses), err)
		}
		a.links = append(a.links, enter)
	}
	return a, nil
}

// close detaches; entries first.
func (a *attachment) close() {
	if a == nil {
		return
	}
	for i := len(a.links) - 1; i >= 0; i-- {
		_ = a.links[i].Close()
	}
	a.links = nil
}
