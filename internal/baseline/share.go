// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"math"

	"github.com/otelcol-llm/otelcol-llm/internal/twosample"
)

// CloseShare is Close for a promise about a share of good events, as availability is: good of total were in the window
// that ended at end. A judge that closes shares closes nothing else.
//
// Shares near 1 hardly differ as numbers, so what is compared for the state is the bad ones, in units of what the promise
// allows: 0.998 where 0.999 is promised is worse by 1, twice of what is allowed.
func (j *Judge) CloseShare(c *Cell, end int64, good, total float64) Result {
	j.window.hist.reset()
	j.window = Decayed{at: end, n: max(total, 0), sum: min(max(good, 0), max(total, 0)), hist: j.window.hist}
	j.begin(c, end)
	r := Result{Static: j.promise.Objective, Observed: j.share(&j.window), Dynamic: j.share(&c.dynamic), Frozen: unknown}
	if int(c.windows) >= j.options.Reference {
		r.Frozen = j.share(&c.frozen)
	}
	if j.promise.Shares {
		r.Shares = j.shares(c)
	}
	var found findings
	if r.Observed.Known() {
		allowed := max(1-j.promise.Objective, math.SmallestNonzeroFloat64)
		bad, n := round(j.window.n-j.window.sum), round(j.window.n)
		promised := func(d *Decayed, e Estimate) finding {
			if !e.Known() {
				return finding{}
			}
			return finding{
				effect: (j.promise.Objective - e.Value) / allowed,
				chance: twosample.Binomial(round(d.n-d.sum), round(d.n), allowed),
			}
		}
		against := func(reference *Decayed, e Estimate) finding {
			if !e.Known() {
				return finding{}
			}
			return finding{
				effect: (e.Value - r.Observed.Value) / allowed,
				chance: twosample.Fisher(bad, n, round(reference.n-reference.sum), round(reference.n)),
			}
		}
		found = findings{
			known:   true,
			unseen:  j.unseen(c, r),
			static:  promised(&j.window, r.Observed),
			lasting: promised(&c.dynamic, r.Dynamic),
			dynamic: against(&c.dynamic, r.Dynamic), frozen: against(&c.frozen, r.Frozen),
		}
	}
	r = j.conclude(c, r, found)
	j.learn(c, r, found)
	return r
}

// share is the share of good events, once there are enough to say one.
func (j *Judge) share(d *Decayed) Estimate {
	e := Estimate{Value: math.NaN(), Samples: d.n}
	if d.n+rounding >= float64(j.options.MinSamples) {
		e.Value, e.Method = d.sum/d.n, Histogram
	}
	return e
}
