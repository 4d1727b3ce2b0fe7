// SPDX-License-Identifier: Apache-2.0

package leaks

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu"
)

var (
	update = flag.Bool("update", false, "judge all and rewrite testdata, in half an hour")
	only   = flag.Int("kind", -1, "with -update: judge this kind only, by its number")
)

const (
	// machines is how many there are of each kind: 208 processes.
	machines = 26
	// sampled is how many of them are judged without -update.
	sampled = 1
)

// library is the fake NVML.
var library string

func TestMain(m *testing.M) {
	flag.Parse()
	dir, err := os.MkdirTemp("", "leaks")
	if err == nil {
		library, err = fakegpu.Build(dir)
	}
	if err == nil {
		err = os.Setenv(fakegpu.Variable, filepath.Join(dir, "scenario"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// judged is a machine's row in testdata/leaks.csv for each of its processes.
func judged(t *testing.T, of, machine int) (rows []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, &kinds[of], machine*gpus)
		m.run()
		for i, o := range m.opened {
			rows = append(rows, fmt.Sprintf("%d,%d,%d,%.3f,%.4f,%s", of, machine*gpus+i, o.times, o.hours, o.used, o.cause))
		}
	})
	return rows
}

// Scenario: 208 processes of each kind, on machines with 8 GPUs. Guarantees: of those that leak, at least 95 of 100 are found, most of them before a fifth of the
// headroom is gone; of those that do not, at most one of 100; each is told once. And all of that is as it was: one machine of each kind is judged anew.
func TestLeaksOfTheSimulatorAreFound(t *testing.T) {
	rows := known(t)
	for of := range kinds {
		if !*update || *only >= 0 && *only != of {
			continue
		}
		rows[of] = nil
		for machine := range machines {
			rows[of] = append(rows[of], judged(t, of, machine)...)
		}
	}
	table := fmt.Sprintf("%d of each; go test ./cmd/llmsim/leaks -update -timeout 1h writes this\n%-58s %7s %8s %8s %8s %8s %8s %8s\n", machines*gpus,
		"", "watched", "found", "median", "95 of 100", "used", "95 of 100", "reopened")
	for of := range kinds {
		k := &kinds[of]
		found, hours, used, again := found(t, rows[of])
		table += summary(k, len(rows[of]), hours, used, again)
		if *only >= 0 && *only != of {
			continue
		}
		require.Len(t, rows[of], machines*gpus, k.name)
		assert.Zero(t, again, "%s: is told twice", k.name)
		if !k.leaks {
			assert.LessOrEqual(t, found, 0.01, k.name)
			continue
		}
		assert.GreaterOrEqual(t, found, 0.95, k.name)
		assert.Less(t, used[percentile(used, 95)], k.used, k.name)
	}
	golden := filepath.Join("testdata", "leaks.txt")
	if *update {
		require.NoError(t, os.WriteFile(list, []byte(head+strings.Join(slices.Concat(rows...), "\n")+"\n"), 0o600))
		require.NoError(t, os.WriteFile(golden, []byte(table), 0o600))
		return
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), table)
	for of := range kinds {
		for machine := range sampled {
			assert.Equal(t, rows[of][machine*gpus:(machine+1)*gpus], judged(t, of, machine), kinds[of].name)
		}
	}
}

// list has a row for each process, and head is its first line.
var (
	list = filepath.Join("testdata", "leaks.csv")
	head = "kind,process,opened,hours,used,cause\n"
)

// known are the rows that were written, by kind.
func known(t *testing.T) [][]string {
	text, err := os.ReadFile(list)
	if err != nil && !*update {
		require.NoError(t, err, "write it by: go test ./cmd/llmsim/leaks -update -timeout 1h")
	}
	rows := make([][]string, len(kinds))
	for row := range strings.Lines(strings.TrimPrefix(string(text), head)) {
		first, _, _ := strings.Cut(row, ",")
		of, err := strconv.Atoi(first)
		require.NoError(t, err)
		require.Less(t, of, len(kinds))
		rows[of] = append(rows[of], strings.TrimSuffix(row, "\n"))
	}
	return rows
}

// found is what became of the processes of a kind: the share that was told to leak, when and by when how much of the headroom was gone, each sorted, and how
// many were told more than once.
func found(t *testing.T, rows []string) (share float64, hours, used []float64, again int) {
	for _, row := range rows {
		var of, process, times int
		var h, u float64
		_, err := fmt.Sscan(strings.Join(strings.Split(row, ",")[:5], " "), &of, &process, &times, &h, &u)
		require.NoError(t, err, row)
		if times > 0 {
			hours, used = append(hours, h), append(used, u)
		}
		if times > 1 {
			again++
		}
	}
	slices.Sort(hours)
	slices.Sort(used)
	return float64(len(hours)) / float64(len(rows)), hours, used, again
}

// percentile is where it stands in what is sorted.
func percentile(sorted []float64, of int) int { return len(sorted) * of / 100 }

// summary is the row of a kind in testdata/leaks.txt.
func summary(k *kind, n int, hours, used []float64, again int) string {
	line := fmt.Sprintf("%-58s %5.0f h %6.1f %%", k.name, k.hours, 100*float64(len(hours))/float64(n))
	if len(hours) > 0 {
		half, most := percentile(hours, 50), percentile(hours, 95)
		line += fmt.Sprintf(" %6.1f h %8.1f h %6.1f %% %7.1f %% %8d", hours[half], hours[most], 100*used[half], 100*used[most], again)
	}
	return line + "\n"
}
