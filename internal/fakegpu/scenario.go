// SPDX-License-Identifier: Apache-2.0

package fakegpu

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Variable names the file with the scenario, for the libraries that Build makes.
const Variable = "OTELCOL_LLM_FAKEGPU"

// settle is how long the libraries may go without looking at the file, and a little.
const settle = 2 * time.Millisecond

const (
	// Blank is a number that a driver does not know: all ones, in as many bits as the number has.
	Blank = ^uint64(0)
	// NoInstance is the GPU instance and compute instance of a process that is in none.
	NoInstance = -1
	// Idle is the load of a process that the driver has no sample of.
	Idle = -1
)

// Scenario is the world that the fake libraries show.
type Scenario struct {
	Driver, NVML string
	CUDA         int // 13010 is 13.1
	Fields       int // the first field that the driver does not know; 0 when it knows all
	GPUs         []GPU
	Rules        []Rule
	Events       []Event
	// WideProcesses writes process records of 32 bytes where callers expect 24, as some drivers of the 535 branch did.
	WideProcesses bool
	// Missing are functions that the library of this driver does not have: for Build, which leaves them out.
	Missing []string
}

// GPU is one card, its instances, and who uses it.
type GPU struct {
	Device
	Instances []Device
	Processes []Process
}

// Device is a GPU or an instance of one. It supports what has a value in Values, and nothing else.
type Device struct {
	UUID, Name, Serial, VBIOS, BusID string
	// Values are NVML's numbers by the keys of c/keys.def, in NVML's units; "field.N" is a field value that has no key,
	// "gpm.N" a GPM metric.
	Values map[string]float64
	// Exact are values that a float64 does not hold, such as Blank; they win over Values.
	Exact map[string]uint64
}

// Process is one that has memory on a GPU.
type Process struct {
	Kind            Kind
	PID             uint32
	Memory          uint64 // By, or Blank
	GPUInstance     int    // or NoInstance
	ComputeInstance int
	SM              int // percent, or Idle
	MemoryUtil      int
	Encoder         int
	Decoder         int
}

// Kind says in which of NVML's lists a process stands.
type Kind string

// The lists of processes.
const (
	Compute  Kind = "compute"
	Graphics Kind = "graphics"
	MPS      Kind = "mps"
)

// Rule makes a function fail or slow.
type Rule struct {
	Function string // "*" is all of them
	GPU      int    // All is every GPU
	Instance int    // All is the GPU and all its instances, Whole the GPU without them
	Return   int    // NVML's or DCGM's return code; 0 only delays
	Delay    time.Duration
}

// All is every GPU, or every instance, of a Rule.
const All = -1

// Whole is a GPU, and none of its instances, of a Rule.
const Whole = -2

// Event happens when a scenario that has it is written and no earlier one had its Sequence or a higher one.
type Event struct {
	Sequence        uint64
	GPU             int
	Type            uint64 // NVML's bit: 8 is an Xid, 0x100 a change of the MIG configuration
	Data            uint64 // the Xid
	GPUInstance     int    // or NoInstance
	ComputeInstance int
}

// Set gives the device a value, in NVML's unit.
func (d *Device) Set(key string, value float64) {
	if d.Values == nil {
		d.Values = map[string]float64{}
	}
	delete(d.Exact, key)
	d.Values[key] = value
}

// SetExact gives the device an integer as it is, such as Blank.
func (d *Device) SetExact(key string, value uint64) {
	if d.Exact == nil {
		d.Exact = map[string]uint64{}
	}
	d.Exact[key] = value
}

// Remove takes values from the device: it does not support them any more.
func (d *Device) Remove(keys ...string) {
	for _, key := range keys {
		delete(d.Values, key)
		delete(d.Exact, key)
	}
}

// Xid adds the event of this code on GPU, after all that the scenario has.
func (s *Scenario) Xid(gpu int, code uint64) {
	s.Add(Event{GPU: gpu, Type: 8, Data: code, GPUInstance: NoInstance, ComputeInstance: NoInstance})
}

// Add adds an event, after all that the scenario has.
func (s *Scenario) Add(e Event) {
	e.Sequence = 1
	if n := len(s.Events); n > 0 {
		e.Sequence = s.Events[n-1].Sequence + 1
	}
	s.Events = append(s.Events, e)
}

// Fail makes a function of GPU return code, for the GPU and its instances.
func (s *Scenario) Fail(function string, gpu, code int) {
	s.Rules = append(s.Rules, Rule{Function: function, GPU: gpu, Instance: All, Return: code})
}

// Write puts the scenario in place of what the file held, at once and whole. When it returns, the next call of a library
// that has the file sees it.
func (s *Scenario) Write(path string) error {
	text, err := s.text()
	if err != nil {
		return err
	}
	draft := path + ".new"
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	if err := os.WriteFile(draft, text, 0o600); err != nil {
		return err
	}
	if err := os.Rename(draft, path); err != nil {
		return err
	}
	Settle()
	return nil
}

// Settle waits until the libraries see what has become of the file.
func Settle() { time.Sleep(settle) }

// text is the file as c/scenario.c reads it: one line a fact.
func (s *Scenario) text() ([]byte, error) {
	var out []byte
	line := func(format string, args ...any) { out = fmt.Appendf(out, format+"\n", args...) }
	line("system driver %s", s.Driver)
	line("system nvml %s", s.NVML)
	line("system cuda %d", s.CUDA)
	line("system fields %d", s.Fields)
	if s.WideProcesses {
		line("system wide_processes 1")
	}
	for i := range s.GPUs {
		lines, err := s.GPUs[i].lines(fmt.Sprintf("gpu %d", i))
		if err != nil {
			return nil, err
		}
		out = append(out, lines...)
		for j := range s.GPUs[i].Instances {
			lines, err := s.GPUs[i].Instances[j].lines(fmt.Sprintf("mig %d %d", i, j))
			if err != nil {
				return nil, err
			}
			out = append(out, lines...)
		}
		for _, p := range s.GPUs[i].Processes {
			memory := strconv.FormatUint(p.Memory, 10)
			line("process %d %s %d %s %d %d %d %d %d %d", i, p.Kind, p.PID, memory, p.GPUInstance, p.ComputeInstance, p.SM, p.MemoryUtil, p.Encoder, p.Decoder)
		}
	}
	for _, r := range s.Rules {
		line("rule %s %d %d %d %d", r.Function, r.GPU, r.Instance, r.Return, r.Delay.Microseconds())
	}
	for _, e := range s.Events {
		line("event %d %d %d %d %d %d", e.Sequence, e.GPU, e.Type, e.Data, e.GPUInstance, e.ComputeInstance)
	}
	return out, nil
}

// lines are the device's, in a fixed order, each after the words that name it.
func (d *Device) lines(name string) ([]byte, error) {
	var out []byte
	for _, text := range [][2]string{{"uuid", d.UUID}, {"name", d.Name}, {"serial", d.Serial}, {"vbios", d.VBIOS}, {"bus_id", d.BusID}} {
		if text[1] != "" {
			out = fmt.Appendf(out, "%s %s %s\n", name, text[0], text[1])
		}
	}
	values := make(map[string]string, len(d.Values)+len(d.Exact))
	for key, value := range d.Values {
		values[key] = strconv.FormatFloat(value, 'f', -1, 64)
	}
	for key, value := range d.Exact {
		values[key] = strconv.FormatUint(value, 10)
		if value == Blank {
			values[key] = "blank"
		}
	}
	names := make([]string, 0, len(values))
	for key := range values {
		if !isKey(key) {
			return nil, fmt.Errorf("%s: %q is no key of c/keys.def, gpm.N or field.N", name, key)
		}
		names = append(names, key)
	}
	slices.Sort(names)
	for _, key := range names {
		out = fmt.Appendf(out, "%s %s %s\n", name, key, values[key])
	}
	return out, nil
}

func isKey(key string) bool {
	for _, prefix := range []string{"gpm.", "field."} {
		if number, ok := strings.CutPrefix(key, prefix); ok {
			_, err := strconv.ParseUint(number, 10, 16)
			return err == nil
		}
	}
	return keys[key]
}
