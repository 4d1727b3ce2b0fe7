// SPDX-License-Identifier: Apache-2.0

// Package fault schedules what goes wrong, for which replicas and when. A kind
// of fault is one file: what it reads of the scenario and what it does to the
// conditions of an engine.
package fault

import (
	"sort"
	"strings"
	"time"

	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/engine"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/yamlkeys"
)

// Kind is one kind of fault.
type Kind struct {
	Name string
	// Read reads the kind's own settings and returns what it does.
	Read func(*yamlkeys.Object) Effect
}

// Effect changes the conditions of an engine; since is the simulated time since
// the fault began. Effects add to each other: they combine with what is there.
type Effect func(since time.Duration, c *engine.Conditions)

// kinds is where a new kind is made known.
var kinds = []Kind{latency, leak}

// Fault is one entry of the schedule.
type Fault struct {
	Kind string
	// Match are the labels a replica must have, all of them; empty matches every one.
	Match map[string]string
	// From and Until bound the fault, [From, Until), in simulated time.
	From, Until time.Duration
	effect      Effect
}

// Schedule is all faults of a scenario.
type Schedule []Fault

// Read reads one entry. Times on the wall's clock are turned into simulated ones
// by speed, in simulated seconds per wall second.
func Read(o *yamlkeys.Object, speed float64) Fault {
	f := Fault{Kind: o.String("kind", ""), Match: o.Strings("match")}
	f.From = o.Duration("from", 0)
	f.Until = o.Duration("until", engine.Never)
	if f.Until <= f.From {
		o.Problem("until", "%v is not after from, %v", f.Until, f.From)
	}
	if o.OneOf("clock", "simulated", "simulated", "wall") == "wall" {
		f.From = time.Duration(float64(f.From) * speed)
		if f.Until != engine.Never {
			f.Until = time.Duration(float64(f.Until) * speed)
		}
	}
	for _, k := range kinds {
		if k.Name == f.Kind {
			f.effect = k.Read(o)
			o.Done()
			return f
		}
	}
	// Without a kind nobody can say which of the other keys are right.
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.Name
	}
	o.Problem("kind", "%q is not one of %s", f.Kind, strings.Join(names, ", "))
	return f
}

// Active says whether the fault is on at a simulated time.
func (f Fault) Active(now time.Duration) bool { return now >= f.From && now < f.Until }

// Matches says whether the fault is about a replica with these labels.
func (f Fault) Matches(labels map[string]string) bool {
	for k, v := range f.Match {
		if labels[k] != v {
			return false
		}
	}
	return true
}

// For returns what a replica with these labels suffers, or nil if nothing ever.
func (s Schedule) For(labels map[string]string) func(time.Duration) engine.Conditions {
	var mine Schedule
	for _, f := range s {
		if f.Matches(labels) {
			mine = append(mine, f)
		}
	}
	if len(mine) == 0 {
		return nil
	}
	return func(now time.Duration) engine.Conditions {
		var c engine.Conditions
		for _, f := range mine {
			if f.Active(now) {
				f.effect(now-f.From, &c)
			}
		}
		return c
	}
}

// Change is the begin or the end of a fault.
type Change struct {
	Fault Fault
	At    time.Duration
	Begin bool
}

// After lists the changes that are still to come, in order of time.
func (s Schedule) After(now time.Duration) []Change {
	var out []Change
	for _, f := range s {
		if f.From > now {
			out = append(out, Change{Fault: f, At: f.From, Begin: true})
		}
		if f.Until > now && f.Until != engine.Never {
			out = append(out, Change{Fault: f, At: f.Until})
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].At < out[j].At })
	return out
}
