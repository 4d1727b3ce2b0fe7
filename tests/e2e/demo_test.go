// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
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
// Guarantees: a violation opens while the scheduled fault lasts, for the replicas that have it and no others, because of a window that
// missed what is promised, and closes because of one that kept it; the one cell that has it is degraded within three windows that are judged,
// and no other ever, while the number over all replicas is as promised; what has it is what explains it; what it cost is told, and the
// budget that is left and the rate at which it was spent say the same. A leak of GPU memory is found while it lasts, on the one GPU that has
// it and no other, with its rate, when nothing is left, its cause, how to see it, and the promises that it will break; and it is over when the
// process has ended. The console's address is told first and last, and when it was told its page was there, in front of what was told;
// nothing that was started is left. How long all that takes is the machine's: what is judged is the order, and the time of the windows.
func TestTheDemoTellsItsStory(t *testing.T) {
	t.Parallel() // beside all others: see parallel
	build := exec.Command("go", "build", "-o", t.TempDir()+"/demo", "./demo")
	build.Dir = spawn.Root(t)
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))

	var told strings.Builder
	demo := exec.Command(build.Args[3], "-for", "10m") // if the story has no end
	demo.Dir = spawn.Root(t)
	pipe, err := demo.StdoutPipe()
	require.NoError(t, err)
	demo.Stderr = demo.Stdout
	require.NoError(t, demo.Start())
	t.Cleanup(func() { _ = demo.Process.Signal(syscall.SIGINT) }) // where the test has ended early
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
	violated := page(t, address[1]+"/api/v1/query?query="+url.QueryEscape(`max by (cloud_region,model_version) (max_over_time(slo_violations_total[1h])) >= 1`))
	assert.Equal(t, []string{`{"cloud_region":"eu-west-1","model_version":"v2"}`}, regexp.MustCompile(`\{"cloud_region[^}]*\}`).FindAllString(violated, -1))
	accused := page(t, address[1]+"/api/v1/query?query="+url.QueryEscape(`max by (cloud_region,device_type,model_version,tenant) (max_over_time(slo_drift_state{state=~"degraded|drifting"}[1h])) > 0`))
	assert.Equal(t, []string{`{"cloud_region":"eu-west-1","device_type":"h100","model_version":"v2","tenant":"acme"}`}, regexp.MustCompile(`\{"cloud_region[^}]*\}`).FindAllString(accused, -1))

	leaks := page(t, address[1]+"/api/v1/query?query="+url.QueryEscape(`max by (process_pid) (max_over_time(gpu_leak_state{state="leaking"}[1h])) > 0`))
	assert.Equal(t, []string{`{"process_pid":"4194206"}`}, regexp.MustCompile(`\{"process_pid[^}]*\}`).FindAllString(leaks, -1), "nobody else is accused")

	started := childrenOf(t, demo.Process.Pid)
	assert.Len(t, started, 2, "the simulator and the Collector")
	const verdicts = `slo_drift_state{slo_id="llm:chat:ttft:p95",cloud_region="eu-west-1",device_type="h100",model_version="v2",state=%q}`
	degradedState, tooFew := fmt.Sprintf(verdicts, "degraded"), fmt.Sprintf(verdicts, "insufficient_data")
	database := onALaptop{t: t, console: address[1]}
	first := theOne(t, database.ask(fmt.Sprintf(`min_over_time((timestamp(%[1]s) and %[1]s == 1)[1h:1s])`, degradedState), time.Now()))
	since := int64(first) - faultBegan(t, started).Unix()
	require.Positive(t, since, "degraded before there was a fault")
	windows := theOne(t, database.ask(fmt.Sprintf(`count_over_time(%s[%[3]ds]) - ignoring(state) sum_over_time(%[2]s[%[3]ds])`, degradedState, tooFew, since), time.Unix(int64(first), 0)))
	t.Logf("degraded with window %g, which ended %d s after the fault had begun", windows, since)
	assert.LessOrEqual(t, windows, 3.0, "windows that were judged since the fault began")
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

	// Where in the story a line stands: what is told at once is told in order, too.
	all := func(line string) (at []int) {
		for _, m := range regexp.MustCompile(`(?m)^ *[0-9.]+ s  `+line).FindAllStringIndex(story, -1) {
			at = append(at, m[0])
		}
		return at
	}
	at := func(line string) int {
		t.Helper()
		found := all(line)
		require.Len(t, found, 1, "%q is told once", line)
		return found[0]
	}
	fault, over := at("the simulator makes"), at("the simulator has ended")
	const guilty = "cloud.region=eu-west-1, model.version=v2"
	// A Collector that stands still for seconds leaves a window with so few requests that none of them need be a slow one.
	broken, kept := all("BROKEN for "+guilty+"$"), all("KEPT AGAIN for "+guilty+"$")
	require.NotEmpty(t, broken, story)
	require.Len(t, kept, len(broken), "what was broken is kept again")
	for i := range broken {
		assert.Less(t, broken[i], kept[i], story)
		assert.True(t, i == 0 || kept[i-1] < broken[i], story)
	}
	assert.Equal(t, len(broken), strings.Count(story, "BROKEN"), "nobody else's promise is broken")
	assert.True(t, fault < broken[0] && broken[0] < over, story)
	for _, m := range regexp.MustCompile(`(BROKEN|KEPT AGAIN) for .*\n.*llm:chat:ttft:p95 was ([0-9.]+) seconds, promised at most 0.75 for`).FindAllStringSubmatch(story, -1) {
		assert.Equal(t, m[1] == "BROKEN", parsed(t, m[2]) > 0.75, m[0])
	}
	assert.Equal(t, 2*len(broken), strings.Count(story, "llm:chat:ttft:p95 was "))

	cost := regexp.MustCompile(`the error budget of ` + guilty + ` since the start: (-?[0-9]+) % left\n +burn rate over 5 minutes: ([0-9.]+) times`).FindStringSubmatch(story)
	require.NotNil(t, cost, story)
	assert.Greater(t, at("the error budget of "), kept[0])
	assert.InDelta(t, 1-parsed(t, cost[2]), parsed(t, cost[1])/100, 0.06, "all that is known is of the last five minutes")
	cell := "cloud.region=eu-west-1, device.type=h100, model.version=v2, tenant=acme"
	degraded, better := at("DEGRADED: "+cell+"$"), at(cell+" is as good as the others again$")
	assert.True(t, fault < degraded && degraded < over && over < better, story)
	assert.Regexp(t, `over all replicas within 0\.[0-9]+; 0\.75 is promised: the number over all is green`, story)
	explained := regexp.MustCompile(`what would not have been slow, were these like the others: (.*)`).FindStringSubmatch(story)
	require.NotNil(t, explained, story)
	for _, has := range strings.Split(cell, ", ") {
		assert.Contains(t, explained[1], has+" ")
	}

	lost, back := at("the replica of .* begins to lose memory of its GPU"), at("somebody restarts the replica of cloud.region=us-east-1, device.type=a100, model.version=v1$")
	found, gone := at("LEAK in the replica of cloud.region=us-east-1, .*: process 4194206\\b"), at("LEAK OVER in the replica of cloud.region=us-east-1, .*: process 4194206: the process has ended$")
	assert.True(t, lost < found && found < back && back < gone, story)
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

// faultBegan is when the simulator, which is one of the processes, made replicas slower.
func faultBegan(t *testing.T, processes []string) time.Time {
	t.Helper()
	for _, pid := range processes {
		line, err := os.ReadFile("/proc/" + pid + "/cmdline")
		require.NoError(t, err)
		if control := regexp.MustCompile(`-control\x00([^\x00]+)`).FindSubmatch(line); control != nil {
			var status struct {
				Started time.Time `json:"started"`
			}
			require.NoError(t, json.Unmarshal([]byte(page(t, "http://"+string(control[1])+"/status")), &status))
			return status.Started.Add(20 * time.Second) // as demo/scenario.yaml says
		}
	}
	require.Fail(t, "there is no simulator")
	return time.Time{}
}

// theOne is the value of the one sample of an answer.
func theOne(t *testing.T, answer []sample) float64 {
	t.Helper()
	require.Len(t, answer, 1)
	return parsed(t, answer[0].Value[1].(string))
}

func parsed(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err)
	return v
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
