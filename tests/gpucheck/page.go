// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// report is what the page tells.
type report struct {
	when      time.Time
	gpus      map[string]map[string]string
	instances int
	rounds    int
	seconds   float64
	source    string
	verdicts  []verdict
	alone     []string // metrics that nvidia-smi has no word for
	log       string
}

// first is a GPU of the machine; the page is called after it.
func (r *report) first() map[string]string {
	return r.gpus[slices.Min(slices.Collect(maps.Keys(r.gpus)))]
}

var noFileName = regexp.MustCompile(`[^a-z0-9.]+`)

// file is <model>-<driver>.md.
func (r *report) file() string {
	gpu := r.first()
	name := strings.TrimPrefix(strings.ToLower(gpu[fieldName]), "nvidia ")
	if r.instances > 0 {
		name += " mig"
	}
	return strings.Trim(noFileName.ReplaceAllString(name+" "+gpu[fieldDriver], "-"), "-") + ".md"
}

func (r *report) markdown() string {
	var b strings.Builder
	gpu := r.first()
	failed := failures(r.verdicts)
	fmt.Fprintf(&b, "# %s, driver %s\n\n", gpu[fieldName], gpu[fieldDriver])
	if failed == 0 {
		b.WriteString("**The receiver and nvidia-smi say the same.**")
	} else {
		fmt.Fprintf(&b, "**%d of %d comparisons failed.**", failed, len(r.verdicts))
	}
	fmt.Fprintf(&b, " Written by `make gpu-check` on %s.\n\n", r.when.UTC().Format(time.DateOnly))
	fmt.Fprintf(&b, "| | |\n|---|---|\n| GPUs | %s |\n| driver | %s |\n", r.models(), gpu[fieldDriver])
	if mode := gpu[fieldMIG]; mode != "" {
		fmt.Fprintf(&b, "| MIG | %s, %d instances |\n", strings.ToLower(mode), r.instances)
	}
	fmt.Fprintf(&b, "| firmware | %s |\n| kernel | %s, %s |\n| source | `%s` |\n| looked | %d times in %.0f s |\n\n",
		gpu[fieldFirmware], kernel(), runtime.GOARCH, r.source, r.rounds, r.seconds)

	b.WriteString("The receiver read every second. Each of its values is compared with what nvidia-smi said before and after, what jumps with\n" +
		"all that it said, and may lie outside of that by the tolerance. What moves has to agree nine times of ten, all else always.\n\n" +
		"| metric | tolerance | compared | agreed | verdict |\n|---|---|---|---|---|\n")
	for _, v := range r.verdicts {
		said := "agrees"
		if v.failed() {
			said = "**differs**: " + v.note
		}
		fmt.Fprintf(&b, "| `%s` | %s | %d | %d | %s |\n", v.what, v.tolerance, v.compared, v.agreed, said)
	}
	b.WriteString("\nWhat neither of them has is not in the table.\n")
	if len(r.alone) > 0 {
		fmt.Fprintf(&b, "\nThe receiver wrote these too, and nvidia-smi has no word for them: `%s`.\n", strings.Join(r.alone, "`, `"))
	}
	if warnings := strings.TrimSpace(r.log); warnings != "" {
		fmt.Fprintf(&b, "\nThe Collector logged %d warnings or errors.\n", strings.Count(warnings, "\n")+1)
	}
	return b.String()
}

// models are those of the machine, and how many of each.
func (r *report) models() string {
	count := map[string]int{}
	for _, gpu := range r.gpus {
		count[gpu[fieldName]]++
	}
	var all []string
	for _, model := range slices.Sorted(maps.Keys(count)) {
		all = append(all, fmt.Sprintf("%d × %s", count[model], model))
	}
	return strings.Join(all, ", ")
}

func kernel() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(name.Release[:])
}
