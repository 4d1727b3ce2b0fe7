// SPDX-License-Identifier: Apache-2.0

//go:build soak

package soak

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

const mib = 1 << 20

// report is docs/soak.md.
func (w *watch) report(t testing.TB) string {
	t.Helper()
	var out strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	first, last := w.samples[0], w.samples[len(w.samples)-1]
	p("# The demo, watched\n")
	p("What `make nightly` writes: the demo runs, eight simulated replicas scraped every second and a fault, and after %s of warm-up", short(*warmUp))
	p("its Collector is looked at every %s for %s. Growth is the median of the slopes between all pairs of looks (Theil–Sen). The test", short(every), short(*length))
	p("fails above %g MiB a minute, or when more than %g %% and %d of series or cells have come.\n", float64(maxGrowth)/mib, 100*maxMore, rare)
	p("%s, commit %s, %s.\n", w.began.UTC().Format("2006-01-02"), w.commit, machine())
	p("`go test -count=1 -timeout 30m -tags soak ./tests/soak -soak-report=docs/soak.md`\n")
	p("| | at first | at last | least | most | growth a minute |")
	p("|---|---|---|---|---|---|")
	for _, row := range []struct{ name, what string }{
		{resident, "resident memory"}, {anon, "of it not a mapped file"}, {heap, "heap in use"},
	} {
		v := w.series(row.name)
		p("| %s, MiB | %.1f | %.1f | %.1f | %.1f | %+.3f |", row.what, v[0]/mib, v[len(v)-1]/mib, slices.Min(v)/mib, slices.Max(v)/mib, w.growth(row.name)/mib)
	}
	for _, name := range sorted(sizes) {
		if v := w.series(name); slices.Max(v) > 0 {
			p("| %s | %.0f | %.0f | %.0f | %.0f | %+.1f |", sizes[name], v[0], v[len(v)-1], slices.Min(v), slices.Max(v), w.growth(name))
		}
	}
	seconds := last.at.Sub(first.at).Seconds()
	rate := func(name string) float64 { return (last.values[name] - first.values[name]) / seconds }
	p("\nMeanwhile %.0f samples a second were stored, and the Collector used %.2f cores.\n", rate("otelcol_tsdb_samples_appended_total"), rate(cpu))
	p("Of its resident memory, %.0f MiB are the binary and the database's files, which the kernel can drop.\n", (last.values[resident]-last.values[anon])/mib)
	p("Resident memory, MiB, over time:\n\n```\n%s```", chart(w.series(resident), 72, 12))
	return out.String()
}

// short is a duration without its zeros.
func short(d time.Duration) string {
	if text, ok := strings.CutSuffix(d.String(), "m0s"); ok {
		return text + "m"
	}
	return d.String()
}

func sorted(m map[string]string) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// chart draws values in a field of so many columns and lines; a column is the greatest of its values. It begins at zero, so that
// what is flat looks flat.
func chart(values []float64, columns, lines int) string {
	columns = min(columns, len(values))
	tops := make([]float64, columns)
	for i, v := range values {
		c := i * columns / len(values)
		tops[c] = max(tops[c], v)
	}
	most := math.Ceil(slices.Max(tops)/mib/20) * 20
	var out strings.Builder
	for line := lines; line > 0; line-- {
		floor := most * (float64(line) - 0.5) / float64(lines)
		fmt.Fprintf(&out, "%5.0f |", most*float64(line)/float64(lines))
		var text strings.Builder
		for _, v := range tops {
			if v/mib >= floor {
				text.WriteByte('#')
			} else {
				text.WriteByte(' ')
			}
		}
		out.WriteString(strings.TrimRight(text.String(), " ") + "\n")
	}
	fmt.Fprintf(&out, "    0 +%s\n", strings.Repeat("-", columns))
	return out.String()
}

func commit(t testing.TB) string {
	t.Helper()
	cmd := exec.Command("git", "describe", "--always", "--dirty", "--exclude=*", "--abbrev=10")
	cmd.Dir = spawn.Root(t)
	out, err := cmd.Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}

func machine() string {
	cpuinfo, _ := os.ReadFile("/proc/cpuinfo")
	model := fields(string(cpuinfo))["model name"]
	meminfo, _ := os.ReadFile("/proc/meminfo")
	var kB int
	_, _ = fmt.Sscan(fields(string(meminfo))["MemTotal"], &kB)
	return fmt.Sprintf("%d virtual cores (%s), %d GiB, %s, %s", runtime.NumCPU(), model, (kB+1<<19)>>20, runtime.GOOS, runtime.Version())
}
