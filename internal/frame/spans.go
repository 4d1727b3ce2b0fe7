// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"errors"
	"fmt"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

const (
	// MaxWindow is how long a window may be.
	MaxWindow = openslo.MaxPolicyWindow
	// MaxLateness is how long a window may be kept open for what comes late. All that is open is in memory, and told when it closes.
	MaxLateness = 24 * time.Hour
)

// CheckSpans reports what is wrong with the settings window and lateness.
func CheckSpans(window, lateness time.Duration) error {
	var errs []error
	if window < time.Second || window%time.Second != 0 {
		errs = append(errs, fmt.Errorf("window: %s is not a whole number of seconds, at least 1s", window))
	}
	if window > MaxWindow {
		errs = append(errs, fmt.Errorf("window: %s is longer than %s", window, openslo.GoDuration(MaxWindow)))
	}
	switch {
	case lateness < 0:
		errs = append(errs, fmt.Errorf("lateness: %s must not be negative", lateness))
	case lateness > MaxLateness:
		errs = append(errs, fmt.Errorf("lateness: %s is longer than %s: nothing would be told for as long", lateness, openslo.GoDuration(MaxLateness)))
	}
	return errors.Join(errs...)
}
