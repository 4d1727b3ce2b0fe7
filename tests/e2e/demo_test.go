// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// Scenario: the README's first command, ended by Ctrl-C once the story is told.
// Guarantees: the violation opens after the scheduled fault has begun, for the replicas that have it and no others, and
// closes after it has ended; the one cell that has it is degraded within three windows, and no other ever, while the number
// over all replicas is as promised; what has it is what explains it; what it cost is told with the next full minute. A leak of GPU memory is found while it lasts, on the one GPU that has it and
// no other, with its rate, when nothing is left, its cause, how to see it, and the promises that it will break; and it is over when the
// process has ended. The console's address is told first and last,
// and when it was told its page was there, in front of what was told; nothing that was started is left.
func TestTheDemoTellsItsStory(t *testing.T) {
	t.Parallel() // beside all others: see parallel
	build := exec.Command("go", "build", "-o", t.TempDir()+"/demo", "./demo")
	build.Dir = spawn.Root(t)
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))

	var told strings.Builder
	demo := exec.Command(build.Args[3], "-for", "180s")
	demo.Dir = spawn.Root(t)
	pipe, err := demo.StdoutPipe()
	require.NoError(t, err)
	demo.Stderr = demo.Stdout
	require.NoError(t, demo.Start())
	buf := make([]byte, 4096)
	for !strings.Contains(told.String(), "that is the whole story") {
		n, err := pipe.Read(buf)
		told.Write(buf[:n])
		if err != nil {
			break
		}
	}
	address := regexp.MustCompile(`the console is there: (http://localhost:\d+)/\?from=now-15m&refresh=10s`).FindStringSubmatch(told.String())
	require.NotNil(t, address, told.String())
	assert.Equal(t, 3, strings.Count(told.String(), address[1]+"/?from"), "before the story, when it answers, and after the story")
	assert.Contains(t, page(t, address[1]+"/"), "<title>")
	// A single window may be missed anywhere on a busy machine; a violation is what the policies open.
	violated := page(t, address[1]+"/api/v1/query?query="+url.QueryEscape(`max by (cloud_region,model_version) (max_over_time(slo_violations_total[5m])) >= 1`))
	assert.Equal(t, []string{`{"cloud_region":"eu-west-1","model_version":"v2"}`}, regexp.MustCompile(`\{"cloud_region[^}]*\}`).FindAllString(violated, -1))
	accused := page(t, address[1]+"/api/v1/query?query="+url.QueryEscape(`max by (cloud_region,device_type,model_version,tenant) (max_over_time(slo_drift_state{state=~"degraded|drifting"}[5m])) > 0`))
	assert.Equal(t, []string{`{"cloud_region":"eu-west-1","device_type":"h100","model_version":"v2","tenant":"acme"}`}, regexp.MustCompile(`\{"cloud_region[^}]*\}`).FindAllString(accused, -1))

	leaks := page(t, address[1]+"/api/v1/query?query="+url.QueryEscape(`max by (process_pid) (max_over_time(gpu_leak_state{state="leaking"}[5m])) > 0`))
	assert.Equal(t, []string{`{"process_pid":"4194206"}`}, regexp.MustCompile(`\{"process_pid[^}]*\}`).FindAllString(leaks, -1), "nobody else is accused")

	started := childrenOf(t, demo.Process.Pid)
	assert.Len(t, started, 2, "the simulator and the Collector")
	require.NoError(t, demo.Process.Signal(syscall.SIGINT))
	for {
		n, err := pipe.Read(buf)
		told.Write(buf[:n])
		if err != nil {
			break
		}
	}
	require.NoError(t, demo.Wait(), told.String())
	story := told.String()
	t.Log(story)

	at := func(line string) float64 {
		t.Helper()
		m := regexp.MustCompile(`(?m)^ *([0-9.]+) s  `+line).FindAllStringSubmatch(story, -1)
		require.Len(t, m, 1, "%q is told once", line)
		seconds, err := strconv.ParseFloat(m[0][1], 64)
		require.NoError(t, err)
		return seconds
	}
	fault, over := at("the simulator makes"), at("the simulator has ended")
	broken, kept := at("BROKEN for cloud.region=eu-west-1, model.version=v2$"), at("KEPT AGAIN for cloud.region=eu-west-1, model.version=v2$")
	cost := at("the error budget of cloud.region=eu-west-1, model.version=v2 since the start: -[0-9]+ % left$")
	assert.GreaterOrEqual(t, cost, kept)
	assert.Regexp(t, `(?m)^ +burn rate over 5 minutes: [0-9.]+ times`, story)
	assert.Equal(t, 1, strings.Count(story, "BROKEN"), "nobody else's promise is broken")
	assert.True(t, fault < broken && broken < over && over < kept, story)
	assert.Less(t, broken-fault, (20 * time.Second).Seconds())
	cell := "cloud.region=eu-west-1, device.type=h100, model.version=v2, tenant=acme"
	degraded, better := at("DEGRADED: "+cell+"$"), at(cell+" is as good as the others again$")
	assert.True(t, fault < degraded && degraded < over && over < better, story)
	assert.Less(t, degraded-fault, (35 * time.Second).Seconds(), "three windows, and the time until a window is known")
	assert.Regexp(t, `over all replicas within 0\.[0-9]+; 0\.75 is promised: the number over all is green`, story)
	explained := regexp.MustCompile(`what would not have been slow, were these like the others: (.*)`).FindStringSubmatch(story)
	require.NotNil(t, explained, story)
	for _, has := range strings.Split(cell, ", ") {
		assert.Contains(t, explained[1], has+" ")
	}
	assert.Contains(t, story, "llm:chat:ttft:p95 was")

	lost, back := at("the replica of .* begins to lose memory of its GPU"), at("somebody restarts the replica of cloud.region=us-east-1, device.type=a100, model.version=v1$")
	found, gone := at("LEAK in the replica of cloud.region=us-east-1, .*: process 4194206\\b"), at("LEAK OVER in the replica of cloud.region=us-east-1, .*: process 4194206: the process has ended$")
	assert.True(t, lost < found && found < back && back < gone, story)
	assert.Less(t, at("that is the whole story"), (150 * time.Second).Seconds())
	flat := strings.Join(strings.Fields(story), " ")
	for _, says := range []string{
		`leaks [45][0-9.]+ GiB an hour, between [0-9.]+ GiB and [0-9.]+ GiB`, // 52.7
		`nothing is left in 4[0-9] minutes`,
		`it will break llm:chat:availability:99 in 4[0-9] minutes, and 1 more`,
		`What the driver holds for process 4194206 grows, and device GPU-00000006-[0-9-]+ does not get it back: an execution context, an engine or a module`,
		`To see it: nvidia-smi --id=GPU-00000006`,
	} {
		assert.Regexp(t, says, flat)
	}

	for _, pid := range started {
		assert.NoDirExists(t, "/proc/"+pid)
	}
}

// page is what a URL answers.
func page(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode, "%s: %s", url, body)
	return string(body)
}

// childrenOf are the pids of a process's children.
func childrenOf(t *testing.T, pid int) (children []string) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	for _, file := range stats {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // it has just ended
		}
		fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
		if fields[1] == strconv.Itoa(pid) {
			children = append(children, filepath.Base(filepath.Dir(file)))
		}
	}
	return children
}
