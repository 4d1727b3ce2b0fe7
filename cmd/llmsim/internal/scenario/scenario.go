// SPDX-License-Identifier: Apache-2.0

// Package scenario reads what a simulation consists of: replicas with their
// labels, engines with their parameters, traffic, and a schedule of faults.
package scenario

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/engine"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/fault"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/trace"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/yamlkeys"
)

// InstanceLabel is the label every replica has, given or not.
const InstanceLabel = "service.instance.id"

// Scenario is a whole simulation but for the wall clock.
type Scenario struct {
	Routing  string
	Traffic  Traffic
	Replicas []Replica
	Faults   fault.Schedule
}

// Traffic is what comes in, as far as the scenario says.
type Traffic struct {
	// Trace is a file; a relative path is taken from the scenario's folder.
	Trace string
	// Rate, when above 0, draws Poisson arrivals per simulated second instead of
	// replaying the trace's times.
	Rate float64
	// Loop repeats the trace.
	Loop         bool
	SharedPrefix trace.SharedPrefix
}

// Replica is one engine and what it is called.
type Replica struct {
	Labels map[string]string
	Model  string
	// Weight is its share of the traffic under random routing.
	Weight float64
	Engine engine.Config
}

// Routings are the ways to spread arrivals over replicas.
var Routings = []string{"round_robin", "least_requests", "random"}

// Default is one replica with the default engine and Poisson traffic.
func Default() Scenario {
	s, err := Parse("default", nil, 1)
	if err != nil {
		panic(err) // a test proves that it does not
	}
	return s
}

// Load reads a scenario file. Speed turns faults on the wall's clock into
// simulated time.
func Load(path string, speed float64) (Scenario, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Scenario{}, fmt.Errorf("scenario: %w", err)
	}
	s, err := Parse(path, data, speed)
	if err != nil {
		return Scenario{}, err
	}
	if t := s.Traffic.Trace; t != "" && !filepath.IsAbs(t) {
		s.Traffic.Trace = filepath.Join(filepath.Dir(path), t)
	}
	return s, nil
}

// Parse reads a scenario and reports every problem in it. The file name is for
// the messages.
func Parse(file string, data []byte, speed float64) (Scenario, error) {
	r, top, err := yamlkeys.Parse(file, data)
	if err != nil {
		return Scenario{}, err
	}
	modelName := top.String("model", "llmsim")
	s := Scenario{Routing: top.OneOf("routing", Routings[0], Routings...)}
	s.Traffic = readTraffic(top.Object("traffic"))
	engines := readEngines(top.Object("engines"))
	s.Replicas = readReplicas(top, engines, modelName)
	for _, o := range top.Objects("faults") {
		f := fault.Read(o, speed)
		if len(f.Match) > 0 && !slices.ContainsFunc(s.Replicas, func(r Replica) bool { return f.Matches(r.Labels) }) {
			o.Problem("match", "no replica has the labels %v", describe(f.Match))
		}
		s.Faults = append(s.Faults, f)
	}
	top.Done()
	if err := r.Err(); err != nil {
		return Scenario{}, err
	}
	return s, nil
}

func readTraffic(o *yamlkeys.Object) Traffic {
	t := Traffic{
		Trace: o.String("trace", ""),
		Rate:  o.Float("rate", 0, 0, 1e6),
		Loop:  o.Bool("loop", false),
	}
	p := o.Object("shared_prefix")
	t.SharedPrefix = trace.SharedPrefix{
		Tokens: p.Int("tokens", 0, 0),
		Share:  p.Float("share", 1, 0, 1),
		Groups: p.Int("groups", 1, 1),
	}
	p.Done()
	o.Done()
	return t
}

func readReplicas(top *yamlkeys.Object, engines map[string]engine.Config, modelName string) []Replica {
	objects := top.Objects("replicas")
	if !top.Has("replicas") {
		return []Replica{{
			Labels: map[string]string{InstanceLabel: "replica-0"}, Model: modelName, Weight: 1, Engine: engines["default"],
		}}
	}
	var out []Replica
	names := slices.Sorted(maps.Keys(engines))
	seen := map[string]bool{}
	for _, o := range objects {
		profile := o.OneOf("engine", "default", names...)
		labels := readLabels(o)
		rep := Replica{Model: o.String("model", modelName), Weight: o.Float("weight", 1, 0, 1e6), Engine: engines[profile]}
		count := o.Int("count", 1, 1)
		for i := range count {
			rep.Labels = maps.Clone(labels)
			if id, given := labels[InstanceLabel]; !given {
				rep.Labels[InstanceLabel] = fmt.Sprintf("replica-%d", len(out))
			} else if count > 1 {
				rep.Labels[InstanceLabel] = fmt.Sprintf("%s-%d", id, i)
			}
			if id := rep.Labels[InstanceLabel]; seen[id] {
				o.Problem("labels", "%s: %q is taken by another replica", InstanceLabel, id)
			} else {
				seen[id] = true
			}
			out = append(out, rep)
		}
		o.Done()
	}
	if len(out) == 0 {
		top.Problem("replicas", "none; want at least one, or no such key for a single default replica")
	}
	if !slices.ContainsFunc(out, func(r Replica) bool { return r.Weight > 0 }) && len(out) > 0 {
		top.Problem("replicas", "every weight is 0; want at least one above")
	}
	return out
}

func readLabels(o *yamlkeys.Object) map[string]string {
	labels := o.Strings("labels")
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		switch {
		case !model.UTF8Validation.IsValidLabelName(k):
			o.Problem("labels", "%q is not a label name", k)
		case strings.HasPrefix(k, model.ReservedLabelPrefix):
			o.Problem("labels", "%q: names with %s in front belong to Prometheus", k, model.ReservedLabelPrefix)
		}
	}
	return labels
}

func describe(labels map[string]string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, k+"="+labels[k])
	}
	return strings.Join(parts, ", ")
}
