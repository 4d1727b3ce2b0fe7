// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Rule fits a process of which each key that is set has one of its values.
type Rule struct {
	// Name is what the audit calls it.
	Name string
	// These are patterns as of a shell, in which * and ? stand for what they do there.
	Namespace, Pod, Container, ContainerID, Executable []string
	// Cgroup are paths of control groups, and what lies below them; a pattern in each part.
	Cgroup []string
	// Command are regular expressions of which one is found in the command line.
	Command []string
	UID     []int

	commands []*regexp.Regexp
}

// answer is whether a rule fits.
type answer uint8

const (
	no answer = iota
	unknown
	yes
)

// shortID is as much of a container's id as tools print.
const shortID = 12

// compile reads the patterns, and reports every one that is wrong by its key.
func (r *Rule) compile() error {
	var errs []error
	set := len(r.UID) > 0
	for _, of := range []struct {
		key    string
		values []string
	}{
		{"namespace", r.Namespace}, {"pod", r.Pod}, {"container", r.Container}, {"container_id", r.ContainerID},
		{"executable", r.Executable}, {"cgroup", r.Cgroup}, {"command", r.Command},
	} {
		set = set || len(of.values) > 0
		for i, value := range of.values {
			if err := check(of.key, value); err != nil {
				errs = append(errs, fmt.Errorf("%s[%d]: %w", of.key, i, err))
			}
		}
	}
	for i, uid := range r.UID {
		if uid < 0 {
			errs = append(errs, fmt.Errorf("uid[%d]: %d is no user: write 0 or more", i, uid))
		}
	}
	if !set {
		errs = append(errs, errors.New(`says nothing: every process would fit; if that is meant, write executable: ["*"]`))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	r.commands = nil
	for _, expression := range r.Command {
		r.commands = append(r.commands, regexp.MustCompile(expression)) // checked
	}
	return nil
}

func check(key, value string) error {
	if value == "" {
		return errors.New("is empty: write a pattern, or remove it")
	}
	if key == "command" {
		if _, err := regexp.Compile(value); err != nil {
			return fmt.Errorf("%q is no regular expression: %w", value, err)
		}
		return nil
	}
	if key == "cgroup" && !strings.HasPrefix(value, "/") {
		return fmt.Errorf("%q does not begin with /: write the path as in /proc/PID/cgroup", value)
	}
	if _, err := path.Match(value, ""); err != nil {
		return fmt.Errorf("%q is no pattern: %w", value, err)
	}
	return nil
}

// fits says whether the rule fits. One key that does not fit is enough for no.
func (r *Rule) fits(f *Facts) answer {
	// Who runs in no pod is known to have none of these names.
	named := func(values []string, name string) answer {
		if name == "" && (f.Cgroup == "" || f.PodUID != "") {
			return unknown
		}
		return matches(values, name, globbed)
	}
	all := yes
	for _, of := range []struct {
		isSet bool
		is    func() answer
	}{
		{len(r.Namespace) > 0, func() answer { return named(r.Namespace, f.Namespace) }},
		{len(r.Pod) > 0, func() answer { return named(r.Pod, f.Pod) }},
		{len(r.Container) > 0, func() answer { return named(r.Container, f.Container) }},
		{len(r.ContainerID) > 0, func() answer {
			return known(f.Cgroup != "" || f.ContainerID != "", r.ContainerID, f.ContainerID, isContainer)
		}},
		{len(r.Executable) > 0, func() answer { return known(f.Path != "", r.Executable, f.Path, isExecutable) }},
		{len(r.Cgroup) > 0, func() answer { return r.grouped(f) }},
		{len(r.Command) > 0, func() answer { return r.commanded(f) }},
		{len(r.UID) > 0, func() answer { return r.owned(f) }},
	} {
		if of.isSet {
			all = min(all, of.is())
		}
	}
	return all
}

func (r *Rule) commanded(f *Facts) answer {
	if f.Command == "" {
		return unknown
	}
	for _, expression := range r.commands {
		if expression.MatchString(f.Command) {
			return yes
		}
	}
	if f.Retitled { // it may fit what it was started with
		return unknown
	}
	return no
}

// grouped goes by the one path that a process is known by. Another one of it, as in version 1, makes that doubtful.
func (r *Rule) grouped(f *Facts) answer {
	is := known(f.Cgroup != "", r.Cgroup, f.Cgroup, isBelow)
	if is == no && slices.ContainsFunc(f.Cgroups, func(of string) bool { return matches(r.Cgroup, of, isBelow) == yes }) {
		return unknown
	}
	return is
}

// everybody says whether a rule fits whoever there is.
func (r *Rule) everybody() bool {
	if len(r.Namespace)+len(r.Pod)+len(r.Container)+len(r.ContainerID)+len(r.UID) > 0 {
		return false
	}
	all := func(n int, is bool) bool { return n == 0 || is }
	return all(len(r.Executable), slices.Contains(r.Executable, "*")) &&
		all(len(r.Cgroup), slices.ContainsFunc(r.Cgroup, func(of string) bool { return len(split(of)) == 0 })) &&
		all(len(r.Command), slices.ContainsFunc(r.commands, func(of *regexp.Regexp) bool { return of.MatchString("") && of.MatchString("\n?") }))
}

func (r *Rule) owned(f *Facts) answer {
	if f.UID < 0 {
		return unknown
	}
	for _, uid := range r.UID {
		if uid == f.UID {
			return yes
		}
	}
	return no
}

func known(isKnown bool, values []string, value string, match func(pattern, value string) bool) answer {
	if !isKnown {
		return unknown
	}
	return matches(values, value, match)
}

func matches(values []string, value string, match func(pattern, value string) bool) answer {
	for _, pattern := range values {
		if value != "" && match(pattern, value) {
			return yes
		}
	}
	return no
}

func globbed(pattern, value string) bool {
	ok, _ := path.Match(pattern, value) // checked
	return ok
}

func isContainer(pattern, id string) bool {
	return globbed(pattern, id) || len(pattern) >= shortID && strings.HasPrefix(id, pattern)
}

// isExecutable holds a pattern against the path if it has a slash, else against the base name.
func isExecutable(pattern, file string) bool {
	if strings.Contains(pattern, "/") {
		return globbed(pattern, file)
	}
	return globbed(pattern, path.Base(file))
}

// isBelow says whether a path is, or lies below, one that fits the pattern part by part.
func isBelow(pattern, file string) bool {
	want, have := split(pattern), split(file)
	if len(want) > len(have) {
		return false
	}
	for i := range want {
		if !globbed(want[i], have[i]) {
			return false
		}
	}
	return true
}

func split(file string) []string {
	return strings.FieldsFunc(file, func(c rune) bool { return c == '/' })
}
