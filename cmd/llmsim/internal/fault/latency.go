// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"math"
	"time"

	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/engine"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/yamlkeys"
)

// latency multiplies the duration of every step: a throttled GPU, a bad kernel,
// a wrong quantisation. Two at once multiply.
var latency = Kind{
	Name: "latency",
	Read: func(o *yamlkeys.Object) Effect {
		factor := o.Float("factor", 1, 0.01, 1000)
		if !o.Has("factor") {
			o.Problem("factor", "missing; want what to multiply step times with, such as 5")
		}
		return func(_ time.Duration, c *engine.Conditions) {
			if c.Slowdown == 0 {
				c.Slowdown = 1
			}
			c.Slowdown = math.Min(c.Slowdown*factor, 1e6)
		}
	},
}
