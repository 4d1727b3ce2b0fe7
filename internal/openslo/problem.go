// SPDX-License-Identifier: Apache-2.0

package openslo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong in one place, and what would be right.
type Problem struct {
	File    string
	Line    int    // counts from 1; 0 where the file itself is the problem (it is missing, too large …)
	Path    string // spec.objectives[0].target; empty where the whole document is meant
	Message string
}

// String is `file:line: path: message`.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	if p.Path != "" {
		b.WriteString(": " + p.Path)
	}
	b.WriteString(": " + p.Message)
	return b.String()
}

// Problems are all that is wrong in a set of files, by file and line. It is the error of [Parse] and [Load].
type Problems []Problem

// Error prints one problem a line.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// journal collects problems while files are read.
type journal struct {
	problems Problems
	// incomplete is set when a file or document could not be told, so that a name which nothing defines may
	// well be defined there: unresolved references would then only hide the real problem.
	incomplete bool
	copied     int // nodes that aliases were replaced by, which maxAliasNodes bounds
}

func (j *journal) add(p Problem) {
	j.problems = append(j.problems, p)
}

// err is nil or the sorted Problems. One mistake can be met twice (an alias used in two places): it is told once.
func (j *journal) err() error {
	if len(j.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(j.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	seen := make(map[Problem]bool, len(j.problems))
	return slices.DeleteFunc(j.problems, func(p Problem) bool {
		if seen[p] {
			return true
		}
		seen[p] = true
		return false
	})
}
