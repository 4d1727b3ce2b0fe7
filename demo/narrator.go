// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// narrator tells what happens.
type narrator struct {
	out      io.Writer
	began    time.Time
	catalog  *openslo.Catalog
	events   string // the file into which the Collector writes its log events
	status   string // URL of the simulator
	database database
	console  string // URL of the Collector's page
	gpus     *gpus  // nil where there are none

	read   int64 // bytes of events told so far
	active int   // faults that were active when last asked
	told   map[string]bool
	looked time.Time // at what drifts
	worse  *cell
	over   time.Time // when the fault had ended
	kept   *account  // of the promise that was broken and is kept again
	leak   leakStory
}

const wrapped = "           "

func (n *narrator) welcome() {
	fmt.Fprintf(n.out, `
Eight simulated vLLM replicas (2 regions × 2 kinds of GPU × 2 model versions) serve a production trace, %d times sped up.
otelcol-llm scrapes their /metrics and judges, for every version in every region:

`, speed)
	for i := range n.catalog.SLOs {
		slo := &n.catalog.SLOs[i]
		fmt.Fprintf(n.out, "  %-26s %s: %s\n", slo.ID, slo.DisplayName, promised(slo))
	}
	fmt.Fprintln(n.out)
	for i := range n.catalog.Policies {
		p := &n.catalog.Policies[i]
		fmt.Fprintf(n.out, "  broken (%s) when missed in %d windows of %s in a row\n", p.Name, p.ConsecutiveWindows, p.Window)
	}
}

// introduceGPUs says what the GPUs on the console are.
func (n *narrator) introduceGPUs(whyNot error) {
	if whyNot != nil {
		fmt.Fprintf(n.out, "\nThere are no simulated GPUs, which take gcc: %v\n", whyNot)
		return
	}
	fmt.Fprint(n.out, `
The GPUs on the console are simulated, one for each replica, whatever this machine has: the Collector reads them by a fake of
NVIDIA's library. One replica leaks memory of its GPU.
`)
}

// promised says an objective in words.
func promised(slo *openslo.SLO) string {
	share := fmt.Sprintf("%g %%", 100*slo.Objective.Target)
	if slo.Indicator.Ratio != nil {
		return "at least " + share
	}
	bound := "at most"
	if !slo.Objective.Op.AtMost() {
		bound = "at least"
	}
	return fmt.Sprintf("%s of them %s %g %s", share, bound, slo.Objective.Value, slo.Unit)
}

func (n *narrator) whereToLook(prometheus, tsdb int, data string) {
	fmt.Fprintf(n.out, `
Look yourself:
  %s   (the console, in a browser)
  curl -s localhost:%d/api/v1/query --data 'query=slo_state{state="violated"}==1'   (PromQL, of its own database)
  curl -s localhost:%d/metrics | grep '^slo_state.*violated'   (a Prometheus endpoint: scrape it)
  tail -F %s   (violations as OTLP JSON)
  %s/*.log   (what the processes say)

Ctrl-C ends everything. In about two minutes you have seen a canary degrade where no global number shows it, a promise break and be kept again,
what that cost, and a leak of GPU memory found and explained while there is memory left.

`, n.console, tsdb, prometheus, n.events, data)
}

func (n *narrator) goodbye(data string) {
	fmt.Fprintf(n.out, "\nStopping. What was written stays in %s\n", data)
}

// say prints a line with the seconds since the beginning.
func (n *narrator) say(format string, args ...any) {
	fmt.Fprintf(n.out, "%7.1f s  %s\n", time.Since(n.began).Seconds(), fmt.Sprintf(format, args...))
}

// tell follows the events until the context ends or a child does.
func (n *narrator) tell(ctx context.Context, children ...*process) error {
	n.told = map[string]bool{}
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		for _, c := range children {
			select {
			case <-c.done:
				return c.ended()
			default:
			}
		}
		n.tellConsole(ctx)
		// Read before and told after the faults are asked for: however long each takes, a cause stands before what it has caused.
		events, err := n.unread()
		if err != nil {
			return err
		}
		n.tellFaults(ctx)
		if err := n.tellEvents(events); err != nil {
			return err
		}
		n.tellDrift(ctx)
		n.tellBooks(ctx)
		n.tellEnd()
	}
}

// tellConsole says when the page answers.
func (n *narrator) tellConsole(ctx context.Context) {
	if n.told["console"] {
		return
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.console, nil)
	if err != nil {
		return
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return // it has not begun to listen yet
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return
	}
	n.told["console"] = true
	n.say("the console is there: %s", n.console)
}

// change is a fault that is on, or that begins or ends.
type change struct {
	Kind  string            `json:"kind"`
	Match map[string]string `json:"match"`
	At    time.Time         `json:"at"`
}

// tellFaults says when the simulator begins and ends a fault. The Collector is not told.
func (n *narrator) tellFaults(ctx context.Context) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.status, nil)
	if err != nil {
		return
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return // it has not begun to listen yet
	}
	defer resp.Body.Close()
	var status struct {
		Replicas     []replica `json:"replicas"`
		ActiveFaults []change  `json:"active_faults"`
		NextFaults   []change  `json:"next_faults"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&status); err != nil {
		return
	}
	if n.gpus != nil {
		if err := n.gpus.show(status.Replicas, time.Now()); err != nil {
			n.say("the simulated GPUs are not shown any more: %v", err)
			n.gpus = nil
		}
	}
	slow := ofKind("latency", status.ActiveFaults)
	if !n.told["running"] {
		n.told["running"] = true
		n.say("traffic is running; all is well so far")
		if next := ofKind("latency", status.NextFaults); len(next) > 0 {
			n.say("in %.0f seconds something will go wrong that no error rate shows", time.Until(next[0].At).Seconds())
		}
	}
	switch {
	case len(slow) > n.active:
		n.say("the simulator makes %s slower now; nobody tells the Collector", labels(slow[0].Match))
	case len(slow) < n.active:
		n.say("the simulator has ended the fault")
		n.over = time.Now()
	}
	n.active = len(slow)
	n.tellLeaking(ofKind("leak", status.ActiveFaults))
}

// ofKind are the faults of a kind.
func ofKind(kind string, all []change) (found []change) {
	for _, c := range all {
		if c.Kind == kind {
			found = append(found, c)
		}
	}
	return found
}

// unread is what the Collector has written beyond what was told.
func (n *narrator) unread() ([]byte, error) {
	f, err := os.Open(n.events)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.Seek(n.read, io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(f)
}

// tellEvents says what whole lines say.
func (n *narrator) tellEvents(data []byte) error {
	for {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		if !whole {
			return nil
		}
		n.read += int64(len(line)) + 1
		data = rest
		if err := n.tellLine(line); err != nil {
			return err
		}
	}
}

func (n *narrator) tellLine(line []byte) error {
	ld, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(line)
	if err != nil {
		return fmt.Errorf("%s: %w", n.events, err)
	}
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, r := range sl.LogRecords().All() {
				n.tellEvent(r)
			}
		}
	}
	return nil
}

func (n *narrator) tellEvent(r plog.LogRecord) {
	if strings.HasPrefix(r.EventName(), "nvidia.") {
		return // of a GPU, and no part of the story
	}
	if strings.HasPrefix(r.EventName(), "gpu.leak.") {
		n.tellLeak(r)
		return
	}
	group := map[string]string{}
	slo, _ := r.Attributes().Get("slo_id")
	i := slices.IndexFunc(n.catalog.SLOs, func(s openslo.SLO) bool { return s.ID == slo.Str() })
	if i >= 0 {
		for _, key := range n.catalog.SLOs[i].GroupBy {
			if v, ok := r.Attributes().Get(key); ok {
				group[key] = v.Str()
			}
		}
	}
	why := r.Body().Str()
	reason, kept := strings.CutPrefix(why, "kept again: ")
	what := map[string]string{
		"slo.violation.opened": "BROKEN", "slo.violation.closed": "CLOSED",
		"slo.burn_rate.opened": "BUDGET SPENT TOO FAST", "slo.burn_rate.closed": "BUDGET NOT SPENT TOO FAST ANY MORE",
	}[r.EventName()]
	if kept {
		what, why = "KEPT AGAIN", reason
	}
	n.say("%s for %s\n%s%s", what, labels(group), wrapped, why)
	switch {
	case kept:
		n.kept = &account{slo: slo.Str(), group: group}
	case r.EventName() == "slo.violation.opened":
		n.kept = nil
	}
}

// labels writes a set of labels in a fixed order.
func labels(m map[string]string) string {
	var all []string
	for k, v := range m {
		all = append(all, k+"="+v)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
