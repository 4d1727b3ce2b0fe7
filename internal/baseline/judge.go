// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"fmt"
	"math"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
	"github.com/otelcol-llm/otelcol-llm/internal/twosample"
)

// Promise is what a cell is held against.
type Promise struct {
	// Objective is the promised value in the base unit: of the quantile, or of the share of good events.
	Objective float64
	// Quantile is which quantile is promised, in (0, 1); 0 for a share.
	Quantile float64
	// HigherIsBetter for throughput and quality. A share of good events is always so.
	HigherIsBetter bool
	// Shares says that results tell the shares of good events as well, for a composite that the promise is a part of.
	Shares bool
}

// Options are the same for all cells of a component.
type Options struct {
	// Decay of the dynamic baseline; its Window is the length of the windows.
	Decay Decay
	// MinSamples from which on a histogram answers; MinimumSamples if that is more.
	MinSamples int
	// Reference is how many windows the frozen baseline is made of: the first that have an answer and keep the promise. It
	// knows a rhythm if they are a whole day.
	Reference int
	// Since is when the frozen baseline begins anew, in Unix nanoseconds: after a change that was wanted. 0 is never.
	Since int64
	Thresholds
}

// DefaultOptions are windows of 5 minutes, a decay of 0.98, 300 samples, and a reference of a day.
func DefaultOptions() Options {
	return Options{
		Decay:      Decay{Factor: 0.98, Window: 5 * time.Minute},
		MinSamples: 300,
		Reference:  288,
		Thresholds: DefaultThresholds(),
	}
}

// Judge closes windows of cells of one promise. It is not for concurrent use.
type Judge struct {
	options Options
	promise Promise
	kept    Promise // as the baselines keep it: mirrored at zero where the objective is below
	window  Decayed // scratch
}

// NewJudge makes a judge. The error names the option that is wrong.
func NewJudge(o Options, p Promise) (*Judge, error) {
	switch {
	case !(o.Decay.Factor > 0 && o.Decay.Factor <= 1):
		return nil, fmt.Errorf("decay: %v is not in (0, 1]", o.Decay.Factor)
	case o.Decay.Window <= 0:
		return nil, fmt.Errorf("window: %v is not above 0", o.Decay.Window)
	case o.MinSamples < 1:
		return nil, fmt.Errorf("min samples: %d is not above 0", o.MinSamples)
	case o.Reference < 1 || o.Reference > math.MaxUint16:
		return nil, fmt.Errorf("reference: %d is not in [1, %d]", o.Reference, math.MaxUint16)
	case !(p.Quantile >= 0 && p.Quantile < 1):
		return nil, fmt.Errorf("quantile: %v is not in [0, 1)", p.Quantile)
	case math.IsNaN(p.Objective) || math.IsInf(p.Objective, 0):
		return nil, fmt.Errorf("objective: %v is not a finite number", p.Objective)
	}
	return &Judge{options: o, promise: p, kept: p.mirrored()}, nil
}

// Cell is what is remembered of one promise in one combination of dimensions. The zero value is empty.
type Cell struct {
	dynamic Decayed
	frozen  Decayed
	windows uint16  // that frozen is made of, until Reference
	since   int64   // the Options.Since that it is of
	last    float64 // observed in the newest of them
	worst   float64 // that two of them in a row were at least as bad as
	verdict verdict
	accused bool // of being degraded, by others than the judge
}

// Accuse says whether a comparison with another version has found the cell degraded, so that a window which is closed then is no part of
// what is normal, be the promise kept or not. It holds until something else is said.
func (c *Cell) Accuse(degraded bool) { c.accused = degraded }

// Result is what a window says, beside what was normal before it.
type Result struct {
	Observed, Dynamic, Frozen Estimate
	Static                    float64 // the objective
	Deviation                 float64 // (observed − static) / static, NaN where not known or open
	Drift                     float64 // (dynamic − static) / static, NaN where not known or open
	State                     State
	Open                      Span   // about the objective, of values of which it matters and cannot be told whether they keep it
	Shares                    Shares // where the promise wants them
}

// Close takes a window in that ended at end, and says what it means. The baselines of the result are those of before the
// window, so that it is not compared with itself. An empty window is no news: nothing but time passes.
func (j *Judge) Close(c *Cell, end int64, w *sketch.Distribution) Result {
	j.window.set(end, w, j.promise.Objective < 0)
	r := j.before(c, end)
	r.Observed = j.observed(w)
	b := brokenIn(w, j.promise)
	if j.promise.Shares {
		r.Shares = j.shares(c)
		r.Shares.Bad, r.Shares.Open = float64(b.bad), float64(b.open)
	}
	var found findings
	if r.Observed.Known() {
		found = findings{known: true, unseen: j.unseen(c, r), lasting: j.lasting(c, r.Dynamic, b.span),
			dynamic: j.against(&c.dynamic, r.Observed.Value, r.Dynamic), frozen: j.against(&c.frozen, r.Observed.Value, r.Frozen)}
		if found.static, found.open = j.againstObjective(b, r.Observed); found.open {
			r.Observed.Method, r.Open = Open, b.span
		}
	}
	r = j.conclude(c, r, found)
	j.learn(c, r, found)
	return r
}

// learn adds the window to the baselines that it is part of: what misses the promise, or may do so, or is accused, is not what it was
// once, and what is degraded and worse than what was normal is not normal. The latter is forgotten meanwhile, so that what stays becomes normal in the end; and
// so is what a cell began with, whatever was promised.
func (j *Judge) learn(c *Cell, r Result, f findings) {
	t := &j.options.Thresholds
	degraded := f.static.beyond(t.Degraded, t.Chance) || c.verdict.state == Degraded && f.static.effect > 0 || c.accused
	if !f.known || !degraded || !f.dynamic.beyond(t.Drifting, t.Chance) {
		c.dynamic.Merge(j.options.Decay, &j.window)
	}
	if j.isReference(c, r, f) {
		c.frozen.Merge(keep, &j.window)
		j.seen(c, r.Observed.Value)
	}
}

// isReference reports whether a window is one of those that the frozen baseline is made of.
func (j *Judge) isReference(c *Cell, r Result, f findings) bool {
	return !math.IsNaN(r.Observed.Value) && int(c.windows) < j.options.Reference && c.verdict.state != Degraded && !f.static.beyond(0, doubt) && !f.open && !c.accused
}

// seen notes what was observed in a window of the reference.
func (j *Judge) seen(c *Cell, observed float64) {
	switch pair := j.promise.better(c.last, observed); {
	case c.windows == 0:
		c.worst = observed
	case c.windows == 1 || j.promise.better(c.worst, pair) == c.worst:
		c.worst = pair
	}
	c.last = observed
	c.windows++
}

// unseen reports whether what is observed is worse than any two windows of the reference in a row: it takes two to be told. What
// the busy hour of every day brings is not.
func (j *Judge) unseen(c *Cell, r Result) bool {
	return !r.Frozen.Known() || j.promise.worse(r.Observed.Value, c.worst) > 0
}

// doubt is the level at which a window seems to miss the promise. To be left out of a reference it need not be certain.
const doubt = 0.05

// keep forgets nothing.
var keep = Decay{Factor: 1, Window: time.Minute}

// againstObjective compares the window with what was promised, which is known exactly. That it is missed is counted; by how much may
// be interpolated. It is open where what may be a miss is beyond chance, and what certainly is one is not.
func (j *Judge) againstObjective(b broken, observed Estimate) (f finding, open bool) {
	p, n := j.promise, round(j.window.n)
	f = finding{effect: p.worse(observed.Value, p.Objective), chance: twosample.Binomial(b.bad, n, p.badShare())}
	if most := j.options.Chance; b.open > 0 && f.chance >= most && twosample.Binomial(b.bad+b.open, n, p.badShare()) < most {
		return finding{}, true
	}
	if float64(b.bad) > p.badShare()*float64(n)*(1+rounding) {
		f.effect = max(f.effect, math.SmallestNonzeroFloat64) // as much as the last boundary tells
	} else {
		f.effect = min(f.effect, 0)
	}
	return f, false
}

// lasting compares what was normal with what was promised: beyond what the window's buckets leave open about the objective, as those
// of before it do. Decayed values are taken for as many as they weigh, though there are more and less is up to chance: so it errs on
// the side of not being certain.
func (j *Judge) lasting(c *Cell, e Estimate, open Span) finding {
	if !e.Known() {
		return finding{}
	}
	p, d, edge := j.promise, &c.dynamic, open.Hi
	if p.HigherIsBetter {
		edge = open.Lo
	}
	n := round(d.n)
	return finding{effect: p.worse(e.Value, p.Objective), chance: twosample.Binomial(min(round(j.beyond(d, edge)), n), n, p.badShare())}
}

// beyond is the weight of what lies on the wrong side of x.
func (j *Judge) beyond(d *Decayed, x float64) float64 {
	if j.promise.Objective < 0 {
		x = -x
	}
	return d.beyond(x, j.kept)
}

// estimate is the promised quantile of what is kept.
func (j *Judge) estimate(d *Decayed) Estimate {
	e := d.estimate(j.kept.Quantile, j.options.MinSamples)
	if j.promise.Objective < 0 {
		e.Value = -e.Value
	}
	return e
}

// against compares the window with a baseline. That of a few values is not known well, so the test knows both sizes. Both
// sides are read from histograms alike, so the width of the buckets does not look like a difference.
func (j *Judge) against(reference *Decayed, observed float64, e Estimate) finding {
	if !e.Known() {
		return finding{}
	}
	n, all := round(j.window.n), round(reference.n)
	return finding{
		effect: j.promise.worse(observed, e.Value),
		chance: twosample.Fisher(min(round(j.beyond(&j.window, e.Value)), n), n, min(round(j.beyond(reference, e.Value)), all), all),
	}
}

func round(x float64) uint64 { return uint64(math.Round(max(x, 0))) }

// before is what was normal until the window that ended at end.
func (j *Judge) before(c *Cell, end int64) Result {
	p, o := j.promise, &j.options
	j.begin(c, end)
	r := Result{Static: p.Objective, Dynamic: j.estimate(&c.dynamic), Frozen: unknown}
	if int(c.windows) >= o.Reference {
		r.Frozen = j.estimate(&c.frozen)
	}
	return r
}

// begin brings the baselines to the begin of the window that ended at end.
func (j *Judge) begin(c *Cell, end int64) {
	c.dynamic.advance(j.options.Decay, j.start(c, end))
	if since := j.options.Since; c.since < since && end-int64(j.options.Decay.Window) >= since {
		c.frozen, c.windows, c.since = Decayed{}, 0, since
	}
}

// start is when the window that ended at end began: what the dynamic baseline was worth then is what counts.
func (j *Judge) start(c *Cell, end int64) int64 {
	return max(end-int64(j.options.Decay.Window), c.dynamic.at)
}

var unknown = Estimate{Value: math.NaN()}

// observed is the quantile of the window: by the distribution itself, whose buckets are the source's own, and by a fit where
// there are too few values for that.
func (j *Judge) observed(w *sketch.Distribution) Estimate {
	q := j.promise.Quantile
	e := j.estimate(&j.window)
	if e.Method != Histogram {
		return e
	}
	lo, hi, ok := bucketOf(w, q)
	if !ok {
		of := w.Quantile(q, 0)
		lo, hi, e.Value = of.Lower, of.Upper, of.Value
	}
	if hi <= narrow*lo {
		e.Value = middle(lo, hi)
	}
	return e
}

// bucketOf is the bucket that holds the q-quantile, where that is quickly told: for raw values, or a histogram like them.
func bucketOf(w *sketch.Distribution, q float64) (lo, hi float64, ok bool) {
	var one *sketch.Exponential
	layouts := 0
	w.Explicit(func([]float64, []uint64) { layouts++ })
	w.Exponential(func(e *sketch.Exponential) { one = e; layouts++ })
	if layouts != 1 || one == nil || one.Scale < maxScale-1 || one.ZeroCount > 0 || len(one.Negative.Counts) > 0 || one.Factor > 1 || one.Factor < 1 {
		return 0, 0, false
	}
	rank := q*float64(w.Count()) - rounding*float64(w.Count())
	var seen uint64
	for i, n := range one.Positive.Counts {
		if seen += n; n > 0 && float64(seen) >= rank {
			at := float64(one.Positive.Offset) + float64(i)
			return math.Exp2(math.Ldexp(at, -int(one.Scale))), math.Exp2(math.Ldexp(at+1, -int(one.Scale))), true
		}
	}
	return 0, 0, false
}

// conclude completes a result whose observed value and baselines are known.
func (j *Judge) conclude(c *Cell, r Result, found findings) Result {
	r.Relate()
	r.State = c.verdict.next(&j.options.Thresholds, found)
	return r
}

// Relate says how far what was observed and what was normal are from the objective, where that can be told.
func (r *Result) Relate() {
	r.Deviation, r.Drift = math.NaN(), math.NaN()
	if r.Observed.Method != Open {
		r.Deviation, r.Drift = relative(r.Observed.Value, r.Static), relative(r.Dynamic.Value, r.Static)
	}
}

// relative is how far v is from of, as a share of it; NaN of nothing.
func relative(v, of float64) float64 {
	if of == 0 {
		return math.NaN()
	}
	return (v - of) / math.Abs(of)
}

// better is the better of two values.
func (p Promise) better(a, b float64) float64 {
	if p.HigherIsBetter {
		return max(a, b)
	}
	return min(a, b)
}

// worse is by how much v is worse than of, as a share of it; negative when it is better. Of nothing, it is a share of what is promised,
// and where that is nothing, too, any number is infinitely more.
func (p Promise) worse(v, of float64) float64 {
	d, share := v-of, math.Abs(of)
	if p.HigherIsBetter {
		d = -d
	}
	if share == 0 {
		share = math.Abs(p.Objective)
	}
	if d == 0 {
		return 0
	}
	return d / share
}

// mirrored is the promise about the negative values where the objective is below zero: what is kept of values is above it.
func (p Promise) mirrored() Promise {
	if p.Objective < 0 {
		p.Objective, p.Quantile, p.HigherIsBetter = -p.Objective, 1-p.Quantile, !p.HigherIsBetter
	}
	return p
}

// badShare is the share of values that the promise allows beyond its objective.
func (p Promise) badShare() float64 {
	if p.HigherIsBetter {
		return p.Quantile
	}
	return 1 - p.Quantile
}
