// SPDX-License-Identifier: Apache-2.0

// Package cause names why memory leaks, by a table of rules that people can extend: a rule says what was seen from the process,
// from the device and from the application, what that means, and by which command a person sees it with his own eyes.
package cause

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Seen is what was seen of one kind of memory.
type Seen string

const (
	// Unknown: nothing was heard of it, or not for long enough.
	Unknown Seen = "unknown"
	// Flat: it does not grow.
	Flat Seen = "flat"
	// Rising: it grows without an end.
	Rising Seen = "rising"
)

// Facts are what was seen, by the keys of a rule's `when`.
type Facts struct {
	// Process is the memory that the driver counts for the process; Live is what it has allocated and not freed.
	Process, Live Seen
	// Device is the memory in use of the whole device; Unattributed that of no visible process.
	Device, Unattributed Seen
	// Engine, Context and Block are what the application makes and does not release, as it says itself.
	Engine, Context, Block Seen
}

func (f *Facts) of(key string) Seen {
	switch key {
	case "process":
		return f.Process
	case "live":
		return f.Live
	case "device":
		return f.Device
	case "unattributed":
		return f.Unattributed
	case "engine":
		return f.Engine
	case "context":
		return f.Context
	default:
		return f.Block
	}
}

var keys = []string{"process", "live", "device", "unattributed", "engine", "context", "block"}

// Rule is one row of the table.
type Rule struct {
	// Cause is its name, as the attribute cause of gpu.leak.cause has it.
	Cause string `yaml:"cause"`
	// When are facts, all of which must hold.
	When map[string]Seen `yaml:"when"`
	// Text says what it means, Verify is the command by which a person looks. {pid} and {device} stand for the process and the
	// device.
	Text   string `yaml:"text"`
	Verify string `yaml:"verify"`
}

// Rules are the table: the first rule that holds decides.
type Rules []Rule

//go:embed rules.yaml
var builtin []byte

// Builtin are the rules that come with the component.
func Builtin() Rules {
	r, err := parse("rules.yaml", builtin)
	if err != nil {
		panic(err) // every test would fail
	}
	return r
}

// Read reads rules from a file; they stand before those that come with the component.
func Read(path string) (Rules, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r, err := parse(path, data)
	return append(r, Builtin()...), err
}

func parse(path string, data []byte) (Rules, error) {
	var file struct {
		Rules Rules `yaml:"rules"`
	}
	d := yaml.NewDecoder(strings.NewReader(string(data)))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w: a rule has cause, when, text and verify", path, err)
	}
	if len(file.Rules) == 0 {
		return nil, fmt.Errorf("%s: rules: must have at least one rule, with cause, when, text and verify", path)
	}
	var errs []error
	for i := range file.Rules {
		at := fmt.Sprintf("%s: rules[%d]", path, i)
		errs = append(errs, file.Rules[i].check(at))
		for before := range i {
			if file.Rules[before].covers(&file.Rules[i]) {
				errs = append(errs, fmt.Errorf("%s: %s: never decides, since rules[%d], %s, holds whenever it does: put it before that one", at, file.Rules[i].Cause, before, file.Rules[before].Cause))
			}
		}
	}
	return file.Rules, errors.Join(errs...)
}

// covers reports whether a rule holds whenever another one does.
func (r *Rule) covers(other *Rule) bool {
	for key, want := range r.When {
		if other.When[key] != want {
			return false
		}
	}
	return len(r.When) > 0
}

// placeholder is a word in braces, which no $ makes one of the shell's.
var placeholder = regexp.MustCompile(`(?:^|[^$])(\{[\pL_][\pL\pN_.:-]*\})`)

func (r *Rule) check(at string) error {
	var errs []error
	for key, text := range map[string]string{"cause": r.Cause, "text": r.Text, "verify": r.Verify} {
		if strings.TrimSpace(text) == "" {
			errs = append(errs, fmt.Errorf("%s: %s: must not be empty", at, key))
		}
	}
	for _, in := range []struct{ key, text string }{{"text", r.Text}, {"verify", r.Verify}} {
		for _, found := range placeholder.FindAllStringSubmatch(in.text, -1) {
			if name := found[1]; name != "{pid}" && name != "{device}" {
				errs = append(errs, fmt.Errorf("%s: %s: %s: unknown placeholder %s: write {pid} or {device}, or a space after a brace that is none", at, r.Cause, in.key, name))
			}
		}
	}
	if len(r.When) == 0 {
		errs = append(errs, fmt.Errorf("%s: when: must name a fact: one of %s", at, strings.Join(keys, ", ")))
	}
	for _, key := range slices.Sorted(maps.Keys(r.When)) {
		if !slices.Contains(keys, key) {
			errs = append(errs, fmt.Errorf("%s: when: unknown fact %q: write one of %s", at, key, strings.Join(keys, ", ")))
		}
		switch r.When[key] {
		case Unknown, Flat, Rising:
		default:
			errs = append(errs, fmt.Errorf("%s: when: %s: %q: write rising, flat or unknown", at, key, r.When[key]))
		}
	}
	return errors.Join(errs...)
}

// Of is the first rule that holds, nil where none does.
func (r Rules) Of(f Facts) *Rule {
	for i := range r {
		holds := true
		for key, want := range r[i].When {
			holds = holds && (f.of(key) == want || f.of(key) == "" && want == Unknown)
		}
		if holds {
			return &r[i]
		}
	}
	return nil
}

// Explain fills the placeholders of a text. An option that names a device that is not known is left out.
func Explain(text, pid, device string) string {
	if device == "" {
		text = strings.ReplaceAll(text, " --id={device}", "")
	}
	return strings.NewReplacer("{pid}", pid, "{device}", device).Replace(text)
}
