// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"time"

	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/engine"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/yamlkeys"
)

// leak takes memory of the GPU that is not given back before the fault ends, as
// when the process is restarted then. It tells itself in /status; whoever shows
// GPUs makes their memory of that. Two at once add up.
var leak = Kind{
	Name: "leak",
	Read: func(o *yamlkeys.Object) Effect {
		rate := o.Float("rate", 0, 1, 1e12)
		if !o.Has("rate") {
			o.Problem("rate", "missing; want bytes a simulated second, such as 1048576")
		}
		return func(since time.Duration, c *engine.Conditions) { c.Leaked += rate * since.Seconds() }
	},
}
