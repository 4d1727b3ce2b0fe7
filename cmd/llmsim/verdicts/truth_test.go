// SPDX-License-Identifier: Apache-2.0

package verdicts

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/engine"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// evaluation is the window of all promises here.
const evaluation = 5 * time.Minute

// sample is one request as a promise sees it.
type sample struct {
	at    time.Duration // when the engine counted it
	value float64       // latency, or 1 for an answer and 0 for none
}

// indicator is what a promise measures of a request, and what the engine shows of that.
type indicator struct {
	of        func(engine.Record) sample
	histogram func(*engine.Stats) engine.Histogram // nil: it is counted, or known of each request
	spans     bool                                 // not scrapes
}

var indicators = map[string]indicator{
	"ttft": {
		of:        func(r engine.Record) sample { return sample{r.FirstToken, (r.FirstToken - r.Arrival).Seconds()} },
		histogram: func(s *engine.Stats) engine.Histogram { return s.TimeToFirstToken },
	},
	"tpot": {
		of: func(r engine.Record) sample {
			if r.OutputTokens < 2 {
				return sample{r.End, 0} // as vLLM has it
			}
			return sample{r.End, (r.LastToken - r.FirstToken).Seconds() / float64(r.OutputTokens-1)}
		},
		histogram: func(s *engine.Stats) engine.Histogram { return s.TimePerOutputToken },
	},
	"e2e": {
		of:        func(r engine.Record) sample { return sample{r.End, (r.End - r.Arrival).Seconds()} },
		histogram: func(s *engine.Stats) engine.Histogram { return s.E2ELatency },
	},
	"answered": {
		of: func(r engine.Record) sample {
			if r.Reason == engine.Abort {
				return sample{r.End, 0}
			}
			return sample{r.End, 1}
		},
	},
	// A span tells all of a request when it ends.
	"ttft-of-spans": {
		of:    func(r engine.Record) sample { return sample{r.End, (r.FirstToken - r.Arrival).Seconds()} },
		spans: true,
	},
	"e2e-of-spans": {
		of:    func(r engine.Record) sample { return sample{r.End, (r.End - r.Arrival).Seconds()} },
		spans: true,
	},
	"goodput": {
		of: func(r engine.Record) sample {
			if (r.FirstToken-r.Arrival).Seconds() <= 0.5 && (r.LastToken-r.FirstToken).Seconds() <= 0.025*float64(r.OutputTokens-1) {
				return sample{r.End, 1}
			}
			return sample{r.End, 0}
		},
		spans: true,
	},
}

// exact says whether what the engine shows can tell good from bad: each request is known, or the limit is a boundary of
// its buckets.
func (s *simulation) exact(slo *openslo.SLO) bool {
	histogram := indicators[slo.Indicator.Name].histogram
	if histogram == nil {
		return true
	}
	stats := s.fleet.Replicas[0].Engine.Stats()
	return slices.Contains(histogram(&stats).Bounds, slo.Objective.Value)
}

// toldLater says whether events may be told when their window has closed: those of a ratio are told once both its parts have
// come equally far, and a span that is bad tells of one part only.
func toldLater(slo *openslo.SLO) bool {
	return slo.Indicator.Ratio != nil && indicators[slo.Indicator.Name].spans
}

func (s *simulation) resolution(slo *openslo.SLO) string {
	switch {
	case indicators[slo.Indicator.Name].spans:
		return "each request known"
	case s.exact(slo):
		return "a boundary of the buckets"
	}
	return "no boundary of the buckets"
}

// truth is what the requests of a window say of a promise.
type truth struct {
	values []float64
	good   int
}

func (t *truth) add(slo *openslo.SLO, value float64) {
	t.values = append(t.values, value)
	if slo.Indicator.Ratio != nil && value == 1 || slo.Indicator.Threshold != nil && value <= slo.Objective.Value {
		t.good++
	}
}

func (t *truth) share() float64 { return float64(t.good) / float64(len(t.values)) }

// kept says whether the promise was kept.
func (t *truth) kept(slo *openslo.SLO) bool { return t.share() >= slo.Objective.Target*(1-1e-9) }

// sli is the exact quantile at the promise's target, or the ratio.
func (t *truth) sli(slo *openslo.SLO) float64 {
	if slo.Indicator.Ratio != nil {
		return t.share()
	}
	rank := slo.Objective.Target * float64(len(t.values))
	slices.Sort(t.values)
	return t.values[max(int(math.Ceil(rank-1e-9)), 1)-1]
}

// truths are the truth of every window: of the requests that the input has shown in it, which is what the connector can
// know of, and of the requests that fell into it by their own time. For spans these are the same.
func (s *simulation) truths(slo *openslo.SLO) (shown, asWas map[time.Time]*truth) {
	shown, asWas = map[time.Time]*truth{}, map[time.Time]*truth{}
	put := func(to map[time.Time]*truth, at time.Time, value float64) {
		end := at.Truncate(evaluation).Add(evaluation)
		if to[end] == nil {
			to[end] = &truth{}
		}
		to[end].add(slo, value)
	}
	of := indicators[slo.Indicator.Name]
	for _, r := range s.requests {
		x := of.of(r.Record)
		at := s.began.Add(x.at)
		put(asWas, at, x.value)
		if !of.spans {
			at = s.scrapedAt(r.replica, x.at)
		}
		put(shown, at, x.value)
	}
	return shown, asWas
}

// counter walks a cumulative counter that was told over time.
type counter struct {
	at    []time.Time
	value map[time.Time]float64
	seen  float64
}

func newCounter(value map[time.Time]float64) *counter {
	return &counter{at: slices.SortedFunc(maps.Keys(value), time.Time.Compare), value: value}
}

// until is by how much it has grown up to a time since the call before.
func (c *counter) until(end time.Time) float64 {
	was := c.seen
	for len(c.at) > 0 && c.at[0].Before(end) {
		c.seen, c.at = c.value[c.at[0]], c.at[1:]
	}
	return c.seen - was
}

// newest is what was told last.
func (c *counter) newest() float64 {
	c.until(time.Unix(1<<40, 0))
	return c.seen
}
