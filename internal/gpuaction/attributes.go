// SPDX-License-Identifier: Apache-2.0

package gpuaction

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Attribute is what an event and the audit say in the same words. Value is a string, int64, float64 or bool.
type Attribute struct {
	Key   string
	Value any
}

// Attributes are those that are known, in the order in which a person reads them.
func (a *Action) Attributes() []Attribute {
	w := writer{}
	w.text("gpu_guard.action.id", a.ID)
	w.text("gpu_guard.outcome", string(a.Outcome))
	w.text("gpu_guard.reason", a.Reason)
	w.put("gpu_guard.dry_run", a.DryRun)
	w.text("gpu_guard.method", a.Method)
	w.text("gpu_guard.rule", a.Rule)
	w.text("gpu_guard.trigger", a.Trigger)
	if a.Trigger == Threshold {
		w.put("gpu_guard.threshold", a.Threshold)
		w.put("gpu_guard.above_for", a.AboveFor)
	}
	w.text("gpu.leak.id", a.LeakID)
	w.text("gpu.leak.cause", a.Cause)
	w.text("hw.id", a.Device)
	w.count("gpu_guard.device.used", a.Used)
	w.count("gpu_guard.device.limit", a.Total)
	w.count("gpu_guard.candidates", uint64(a.Candidates))
	a.Process.attributes(&w)
	w.count("gpu_guard.process.held", a.Held)
	w.count("gpu_guard.process.growth", a.Growth)
	w.seconds("gpu_guard.detection.duration", a.Detection)
	w.seconds("gpu_guard.decision.duration", a.Decision)
	w.seconds("gpu_guard.duration", a.Duration)
	return w.all
}

func (p *Process) attributes(w *writer) {
	if p.PID == 0 {
		return
	}
	w.put("process.pid", int64(p.PID))
	w.count("gpu_guard.process.start_ticks", p.Start)
	if p.Started != 0 {
		w.text("process.creation.time", time.Unix(0, p.Started).UTC().Format("2006-01-02T15:04:05.00Z07:00"))
	}
	w.text("process.executable.name", p.Executable)
	w.text("process.executable.path", p.Path)
	if p.UID >= 0 {
		w.put("process.real_user.id", int64(p.UID))
	}
	w.text("process.linux.cgroup", p.Cgroup)
	w.text("container.id", p.ContainerID)
	w.text("k8s.pod.uid", p.PodUID)
	w.text("k8s.namespace.name", p.Namespace)
	w.text("k8s.pod.name", p.Pod)
	w.text("k8s.container.name", p.Container)
}

// writer leaves out what is not known.
type writer struct{ all []Attribute }

func (w *writer) put(key string, value any) { w.all = append(w.all, Attribute{key, value}) }

func (w *writer) text(key, value string) {
	if value != "" {
		w.put(key, value)
	}
}

func (w *writer) count(key string, value uint64) {
	if value != 0 {
		w.put(key, int64(value))
	}
}

func (w *writer) seconds(key string, value float64) {
	if value > 0 {
		w.put(key, value)
	}
}

// MarshalJSON writes a flat object: when, what, the attributes, and the same in words.
func (a Action) MarshalJSON() ([]byte, error) {
	b := bytes.NewBufferString("{")
	field := func(key string, value any) error {
		name, err := json.Marshal(key)
		if err != nil {
			return err
		}
		content, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(content)
		return nil
	}
	for _, of := range append([]Attribute{{"time", time.Unix(0, a.At).UTC().Format(time.RFC3339Nano)}, {"event", EventName}}, a.Attributes()...) {
		if err := field(of.Key, of.Value); err != nil {
			return nil, err
		}
	}
	if err := field("text", a.Text()); err != nil {
		return nil, err
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// Text says it in words.
func (a *Action) Text() string {
	var b strings.Builder
	if a.Process.PID != 0 {
		fmt.Fprintf(&b, "process %d", a.Process.PID)
		if a.Process.Executable != "" {
			fmt.Fprintf(&b, " (%s)", a.Process.Executable)
		}
		b.WriteByte(' ')
	} else {
		b.WriteString("nobody ")
	}
	switch a.Outcome {
	case WouldTerm:
		b.WriteString("would be ended; this is a dry run")
	case Termed:
		b.WriteString("is asked to end")
	case Exited:
		fmt.Fprintf(&b, "has ended %.3g s after it was asked to", a.Duration)
	case Killed:
		fmt.Fprintf(&b, "was killed %.3g s after it was asked to end", a.Duration)
	case Stuck:
		b.WriteString("was killed and has not ended: the driver may hold it")
	case Stopped:
		b.WriteString("was asked to end and is not killed: the guard was stopped")
	case Interrupted:
		b.WriteString("was about to be ended when the Collector went away; what came of it is not known")
	case Refused:
		fmt.Fprintf(&b, "is ended: %s", a.Reason)
		if a.Process.PID != 0 {
			return strings.Replace(b.String(), "is ended", "is not ended", 1) + a.why()
		}
	}
	return b.String() + a.why()
}

func (a *Action) why() string {
	on, of := a.Device, " of "+a.Device
	if on == "" {
		on, of = "the only device", ""
	}
	switch a.Trigger {
	case Threshold:
		if a.Total == 0 {
			return ""
		}
		return fmt.Sprintf("; memory of %s was at %.3g %% or above for %.3g s and is at %.3g %%", on, 100*a.Threshold, a.AboveFor, 100*float64(a.Used)/float64(a.Total))
	case Leak:
		if a.Cause != "" {
			return fmt.Sprintf("; it leaks memory%s (%s)", of, a.Cause)
		}
		return "; it leaks memory" + of
	}
	return ""
}
