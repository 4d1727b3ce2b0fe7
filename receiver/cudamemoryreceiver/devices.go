// SPDX-License-Identifier: Apache-2.0

package cudamemoryreceiver

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/otelcol-llm/otelcol-llm/internal/gpuwatch"
	"github.com/otelcol-llm/otelcol-llm/internal/workload"
	"github.com/otelcol-llm/otelcol-llm/receiver/cudamemoryreceiver/internal/device"
)

// maxFile bounds what is read of a process' environment and of its control groups: a few kilobytes as a rule, and theirs to choose.
const maxFile = 1 << 20

// devices knows on which device each process is. It is asked by those who collect and by those who tell the guard.
type devices struct {
	proc string // where the host's /proc is; empty where that is not known
	most int    // one beyond is not known

	mu sync.RWMutex
	of map[gpuwatch.Process]place
}

// place is what a process was found to see, and what follows from that.
type place struct {
	environment device.Environment
	contained   bool
	uuid        string
}

func newDevices(proc string, most int) *devices {
	return &devices{proc: proc, most: most, of: map[gpuwatch.Process]place{}}
}

// find returns the device of a process, and looks at its environment when it is asked for the first time.
func (d *devices) find(p gpuwatch.Process) string {
	d.mu.RLock()
	at, known := d.of[p]
	full := len(d.of) >= d.most
	d.mu.RUnlock()
	if known || full {
		return at.uuid
	}
	at = d.look(p)
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.of[p]; !known && len(d.of) < d.most {
		d.of[p] = at
	}
	return d.of[p].uuid
}

// given says which device somebody who knows has given to the process' container.
func (d *devices) given(p gpuwatch.Process, uuid string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, known := d.of[p]
	if !known {
		return ""
	}
	at.uuid = at.environment.Only(at.contained, uuid)
	d.of[p] = at
	return at.uuid
}

// forget is for a process that has ended.
func (d *devices) forget(p gpuwatch.Process) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.of, p)
}

// look reads what decides. What may not be read leaves the device open.
func (d *devices) look(p gpuwatch.Process) (at place) {
	folder := filepath.Join(d.proc, strconv.Itoa(p.PID))
	environ, ok := read(filepath.Join(folder, "environ"))
	if d.proc == "" || !ok {
		at.environment.Chosen = true // among devices that nobody knows
		return at
	}
	at.environment = device.Parse(environ)
	cgroup, _ := read(filepath.Join(folder, "cgroup"))
	at.contained = workload.ParseCgroup(cgroup).ContainerID != ""
	at.uuid = at.environment.Only(at.contained, "")
	return at
}

func read(path string) (content []byte, ok bool) {
	file, err := os.Open(path)
	if err != nil {
		return nil, false
	}
	defer file.Close()
	content, err = io.ReadAll(io.LimitReader(file, maxFile))
	return content, err == nil
}
