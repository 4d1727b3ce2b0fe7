// SPDX-License-Identifier: Apache-2.0

package baseline

import "math"

// Adopt makes a cell one of this judge's promise that was closed by another promise about the same values: what is kept of them stays
// as it is. The worst of the reference was a quantile that is not asked for any more, so it is taken to have been as far from the
// whole reference as it was: what is known of a rhythm goes on. Where the other side is the worse one now, the reference begins anew.
func (j *Judge) Adopt(c *Cell, of Promise) {
	p := j.promise
	switch {
	case c.windows == 0 || p.Quantile == 0 || p.Quantile == of.Quantile:
		return
	case p.HigherIsBetter != of.HigherIsBetter:
		c.frozen, c.windows = Decayed{}, 0
		return
	}
	of.Objective = p.Objective // it is on the same side of zero
	was, is := c.frozen.hist.quantile(of.mirrored().Quantile), c.frozen.hist.quantile(j.kept.Quantile)
	if j.promise.Objective < 0 {
		was, is = -was, -is
	}
	if share := is / was; share > 0 && !math.IsInf(share, 1) {
		c.worst, c.last = share*c.worst, share*c.last
	} else {
		c.worst, c.last = is, is
	}
}
