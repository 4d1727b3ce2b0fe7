// SPDX-License-Identifier: Apache-2.0

package leak

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/otelcol-llm/otelcol-llm/connector/gpuleakconnector/internal/cause"
	"github.com/otelcol-llm/otelcol-llm/internal/trend"
)

// Event is a leak that opens or closes. It is plain values, for checkpoints, so the order of the fields is part of the format.
type Event struct {
	_          struct{} `cbor:",toarray"`
	Opened     bool
	ID         string // the same for both, and whenever the same is judged again
	Time       int64  // event time of the verdict
	Since      int64  // when it was opened
	Process    ID
	Device     string // of which the process takes most
	Executable string
	Labels     []Label
	// NaN does not stand in a checkpoint: what is not known is below 0.
	Memory, Left, Rate, RateLow, RateHigh, Exhaustion, ExhaustionLow, ExhaustionHigh float64
	PerRequest, PerRequestFirst, PerServed                                           float64
	CacheFree                                                                        float64 // share of the KV cache
	Span                                                                             time.Duration
	Adjusted                                                                         bool
	Cause, Explanation, Verify, Text                                                 string
	Promises                                                                         []Promise // that it will break, the first one first
	Whole                                                                            bool      // it is of a device, of whose processes nothing is told
}

// opened is a leak that is open.
type opened struct {
	_      struct{} `cbor:",toarray"`
	ID     string
	At     int64
	Device string // of which it took most
}

// maxEvents bounds the events that wait to be taken.
const maxEvents = 10_000

// openOrClose tells that a process began, or has ceased, to leak: one event each, however many devices it has.
func (f *Fleet) openOrClose(p *Process, at int64) {
	var worst *Place
	for _, place := range p.places {
		if place.Result.State == trend.Leaking && (worst == nil || place.Result.Rate.Value > worst.Result.Rate.Value) {
			worst = place
		}
	}
	switch {
	case worst != nil && p.open == nil:
		p.leaks++
		p.open = &opened{ID: identify(p), At: at, Device: worst.Device}
		f.put(f.event(p, worst, at, true, ""))
	case worst == nil && p.open != nil && !f.holds(p, at):
		f.end(p, at, "memory does not grow any more")
	}
}

// end closes what is open.
func (f *Fleet) end(p *Process, at int64, why string) {
	f.put(f.event(p, p.place(p.open.Device), at, false, why))
	p.open = nil
}

// identify is the same for the same leak, whoever judges it and however often: it is the process, by its beginning, and how many leaks it
// has had. When it was found is no part of it, since a crash loses some of what was heard, and the verdict comes a little later then.
func identify(p *Process) string {
	since := int64(math.MaxInt64)
	for _, place := range p.places {
		for _, s := range []*trend.Series{&place.used, &place.live, place.alone()} {
			if at := s.Since(); at != 0 {
				since = min(since, at)
			}
		}
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %d %d", p.Host, p.PID, p.Device, since, p.leaks))
	return hex.EncodeToString(sum[:12])
}

// alone is the memory of the whole device where that is judged, and else one of which nothing is known.
func (p *Place) alone() *trend.Series {
	if p.whole {
		return &p.device
	}
	return &trend.Series{}
}

func (f *Fleet) put(ev Event) {
	if len(f.events) < maxEvents {
		f.events = append(f.events, ev)
	}
}

// TakeEvents are the events since the last call.
func (f *Fleet) TakeEvents() []Event {
	all := f.events
	f.events = nil
	return all
}

// Open are the leaks that are open, as the events that told of them would be now.
func (f *Fleet) Open() (all []Event) {
	for _, p := range append(sorted(f.processes), sorted(f.devices)...) {
		if p.open != nil {
			all = append(all, f.event(p, p.place(p.open.Device), p.open.At, true, ""))
		}
	}
	return all
}

func (f *Fleet) event(p *Process, place *Place, at int64, isOpen bool, why string) Event {
	r := &place.Result
	known := func(v float64) float64 {
		if math.IsNaN(v) {
			return -1
		}
		return v
	}
	ev := Event{
		Opened: isOpen, ID: p.open.ID, Time: at, Since: p.open.At, Process: p.ID, Device: place.Device, Executable: p.Executable, Labels: p.Labels,
		Memory: place.Memory(), Left: known(place.left), Rate: known(r.Rate.Value), RateLow: known(r.Rate.Low), RateHigh: known(r.Rate.High),
		Exhaustion: known(r.Exhaustion.Value), ExhaustionLow: known(r.Exhaustion.Low), ExhaustionHigh: known(r.Exhaustion.High),
		PerRequest: known(r.PerRequest), PerRequestFirst: known(r.PerRequestFirst), PerServed: known(r.PerServed),
		Span: r.Span, Adjusted: r.Adjusted, CacheFree: -1, Whole: place.whole,
	}
	if len(p.load.cache) > 0 {
		ev.CacheFree = max(1-greatest(p.load.cache), 0)
	}
	if !isOpen {
		ev.Text = why
		return ev
	}
	if c := place.Cause; c != nil {
		ev.Cause, ev.Explanation = c.Cause, cause.Explain(c.Text, p.PID, place.Device)
		ev.Verify = cause.Explain(c.Verify, p.PID, place.Device)
	}
	ev.Promises = place.Promises
	const alone = 1.05 // what it would take by itself, and what all take, are the same but for noise
	ev.Text = text(&ev, place.left > alone*r.Exhaustion.Value*r.Rate.Value)
	return ev
}

// text says it in words; shared is whether others take of what is left, too.
func text(ev *Event, shared bool) string {
	var b strings.Builder
	switch {
	case ev.Whole:
		fmt.Fprintf(&b, "memory of device %s, of whose processes nothing is told,", ev.Device)
	case ev.Process.PID == "":
		fmt.Fprintf(&b, "memory of no visible process on device %s", ev.Device)
	default:
		fmt.Fprintf(&b, "process %s", ev.Process.PID)
		if ev.Executable != "" {
			fmt.Fprintf(&b, " (%s)", ev.Executable)
		}
	}
	b.WriteString(ev.in())
	fmt.Fprintf(&b, " leaks %s an hour, between %s and %s, as seen over %s", amount(3600*ev.Rate), amount(3600*ev.RateLow), amount(3600*ev.RateHigh), ev.Span.Round(time.Minute))
	if ev.Adjusted {
		b.WriteString(", at equal traffic")
	}
	fmt.Fprintf(&b, "; it holds %s", amount(ev.Memory))
	if ev.PerServed > 0 {
		fmt.Fprintf(&b, ", and %s more for each request that was served meanwhile", amount(ev.PerServed))
	}
	if ev.Exhaustion >= 0 && !math.IsInf(ev.Exhaustion, 1) {
		fmt.Fprintf(&b, "; nothing is left in %s", hours(ev.Exhaustion))
		if !math.IsInf(ev.ExhaustionHigh, 1) {
			fmt.Fprintf(&b, " (%s to %s)", hours(ev.ExhaustionLow), hours(ev.ExhaustionHigh))
		}
		if shared {
			b.WriteString(", with all else that grows on the device")
		}
	}
	if len(ev.Promises) > 0 {
		first := ev.Promises[0]
		if first.By == ByBurn {
			fmt.Fprintf(&b, "; %s breaks in %s at the present burn rate", first.ID, hours(first.Within))
		} else {
			fmt.Fprintf(&b, "; it will break %s in %s", first.ID, hours(first.Within))
		}
		if more := len(ev.Promises) - 1; more > 0 {
			fmt.Fprintf(&b, ", and %d more", more)
		}
	}
	if ev.Explanation != "" {
		fmt.Fprintf(&b, ". %s To see it: %s", ev.Explanation, ev.Verify)
	}
	return b.String()
}

// in says where a process, or a device, is, as far as that is known: its pod, or else its container, and its host.
func (ev *Event) in() (where string) {
	of := map[string]string{}
	for _, l := range ev.Labels {
		of[l.Key] = l.Value
	}
	const short = 12 // as container runtimes print them
	switch pod, container := of["k8s.pod.name"], of["container.id"]; {
	case pod != "" && of["k8s.namespace.name"] != "":
		where = " in pod " + of["k8s.namespace.name"] + "/" + pod
	case pod != "":
		where = " in pod " + pod
	case container != "":
		where = " in container " + container[:min(len(container), short)]
	}
	if host := cmp.Or(of["host.name"], of["k8s.node.name"], ev.Process.Host); host != "" {
		where += " on " + host
	}
	return where
}

// amount writes bytes in the unit of which there is about one at least, so that there are never more than three digits before the point.
func amount(bytes float64) string {
	for _, unit := range []struct {
		name string
		size float64
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if math.Abs(bytes) >= 999.5*unit.size/1024 {
			return three(bytes/unit.size) + " " + unit.name
		}
	}
	return fmt.Sprintf("%.0f B", bytes)
}

// three writes three digits, or all that stand before the point.
func three(v float64) string {
	if math.Abs(v) >= 999.5 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

func hours(seconds float64) string {
	switch {
	case seconds < 119.5:
		return fmt.Sprintf("%.0f seconds", seconds)
	case seconds < 2*3600:
		return fmt.Sprintf("%.0f minutes", seconds/60)
	case seconds < 999.5*3600:
		return three(seconds/3600) + " hours"
	default:
		return three(seconds/86400) + " days"
	}
}
