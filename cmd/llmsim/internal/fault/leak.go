// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"math"
	"time"

	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/engine"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/yamlkeys"
)

// leak takes memory of the GPU that is not given back before the fault ends, as
// when the process is restarted then: as time goes by, with each request that is
// finished, or both. Taken in blocks, it is what an allocator takes for it; with
// a limit it is a cache that fills, and no leak. It tells itself in /status;
// whoever shows GPUs makes their memory of that. Two at once add up.
var leak = Kind{
	Name: "leak",
	Read: func(o *yamlkeys.Object) Effect {
		const most = 1e12
		rate := o.Float("rate", 0, 0, most)
		perRequest := o.Float("per_request", 0, 0, most)
		block := o.Float("block", 0, 0, most)
		limit := o.Float("limit", math.Inf(1), 0, math.Inf(1))
		switch {
		case rate == 0 && perRequest == 0:
			o.Problem("rate", "missing; want bytes a simulated second, such as 1048576, or bytes for each request in per_request")
		case rate == 0 && (o.Has("block") || o.Has("limit")):
			o.Problem("rate", "missing; block and limit are those of what is taken as time goes by")
		}
		return func(since time.Duration, c *engine.Conditions) {
			taken := rate * since.Seconds()
			if block > 0 {
				taken = math.Floor(taken/block) * block
			}
			c.Leaked += min(taken, limit)
			c.LeaksPerRequest += perRequest
		}
	},
}
