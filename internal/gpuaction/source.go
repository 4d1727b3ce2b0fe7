// SPDX-License-Identifier: Apache-2.0

package gpuaction

import (
	"fmt"

	"go.opentelemetry.io/collector/component"
)

// Source tells actions as they happen.
type Source interface {
	// Subscribe calls take for each action, one after the other, until cancel is called. take must return at once. The first
	// who subscribes also hears what was done before.
	Subscribe(take func(Action)) (cancel func())
}

// DefaultID is the id by which the receiver looks for the guard.
var DefaultID = component.MustNewID("gpu_guard")

// Find returns the Source with the id among the host's extensions.
func Find(host component.Host, id component.ID) (Source, error) {
	extension, ok := host.GetExtensions()[id]
	if !ok {
		return nil, fmt.Errorf("guard: no extension %q is running: add it under extensions and service::extensions", id)
	}
	source, ok := extension.(Source)
	if !ok {
		return nil, fmt.Errorf("guard: extension %q is no gpu_guard", id)
	}
	return source, nil
}
