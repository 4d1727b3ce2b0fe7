// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"go.opentelemetry.io/collector/pdata/plog"
)

// leakStory is how far the leak has come: what the simulator does, and what the Collector has said of it.
type leakStory struct {
	leaking map[string]string // the replica that leaks, as the simulator says; nil while none does
	open    bool              // the Collector says that there is one
}

// tellLeaking says when a replica begins to leak, and when that is over. The Collector is not told.
func (n *narrator) tellLeaking(active []change) {
	l := &n.leak
	switch {
	case n.gpus == nil: // nobody sees it
	case len(active) > 0 && l.leaking == nil:
		l.leaking = active[0].Match
		n.say("the replica of %s begins to lose memory of its GPU; nothing else of it changes", labels(l.leaking))
	case len(active) == 0 && l.leaking != nil:
		n.say("somebody restarts the replica of %s", labels(l.leaking))
		l.leaking = nil
	}
}

// awaitsLeak reports whether the story of the leak goes on.
func (n *narrator) awaitsLeak() bool { return n.gpus != nil && (n.leak.leaking != nil || n.leak.open) }

// tellLeak says what the Collector says of a leak.
func (n *narrator) tellLeak(r plog.LogRecord) {
	text := r.Body().Str()
	n.leak.open = r.EventName() == "gpu.leak.opened"
	of := ""
	pid, isProcess := r.Attributes().Get("process.pid")
	if isProcess {
		if replica := n.gpus.whose(pid.Int()); replica != nil {
			of = " in the replica of " + labels(replica)
		}
	}
	if n.leak.open {
		n.say("%s", folded(fmt.Sprintf("LEAK%s: %s", of, text)))
		return
	}
	n.say("LEAK OVER%s: process %s: %s", of, pid.AsString(), text)
}

// folded breaks a text into lines, of which all but the first are indented.
func folded(text string) string {
	const width = 120
	var b strings.Builder
	line := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case line+1+len(word) > width:
			b.WriteString("\n" + wrapped)
			line = 0
		default:
			b.WriteByte(' ')
			line++
		}
		b.WriteString(word)
		line += len(word)
	}
	return b.String()
}
