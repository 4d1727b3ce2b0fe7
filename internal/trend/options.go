// SPDX-License-Identifier: Apache-2.0

package trend

import (
	"fmt"
	"time"
)

// Options say what a leak is.
type Options struct {
	// MinDuration is how long a rise must have been seen before it is a leak, unless memory is exhausted before, or within three times as long
	// as it was seen. The widths of
	// the spans that are looked at follow from it, so series of other options cannot be merged.
	MinDuration time.Duration
	// Settle is how long after its beginning a process is not looked at: it loads its model.
	Settle time.Duration
	// Alpha is the level of the test of one span.
	Alpha float64
	// MinRise is the least rise that matters, as a share of the memory in use.
	MinRise float64
	// Enter is how long worse must be found before the state becomes worse, Leave before it becomes better.
	Enter, Leave time.Duration
}

// DefaultOptions are 3 hours, after 10 minutes, at 0.001 %, from 0.5 % on; worse after 10 minutes, better after an hour.
func DefaultOptions() Options { return OptionsFor(3 * time.Hour) }

// OptionsFor are the default options for another MinDuration, of which the other times are shares.
func OptionsFor(minDuration time.Duration) Options {
	return Options{
		MinDuration: minDuration, Settle: minDuration / 18, Alpha: 1e-5, MinRise: 0.005,
		Enter: minDuration / 18, Leave: minDuration / 3,
	}
}

// minDuration is the least: cells would be shorter than scrapes are apart.
const minDuration = time.Minute

// Validate names the option that is wrong.
func (o Options) Validate() error {
	switch {
	case o.MinDuration < minDuration:
		return fmt.Errorf("min duration: %s must be at least %s", o.MinDuration, minDuration)
	case o.Settle < 0 || o.Enter < 0 || o.Leave < 0:
		return fmt.Errorf("settle %s, enter %s, leave %s: must not be negative", o.Settle, o.Enter, o.Leave)
	case !(o.Alpha > 0 && o.Alpha < 0.5):
		return fmt.Errorf("alpha: %v is not in (0, 0.5)", o.Alpha)
	case !(o.MinRise >= 0 && o.MinRise < 1):
		return fmt.Errorf("min rise: %v is not in [0, 1)", o.MinRise)
	}
	return nil
}

// width is that of the finest cells. Those of mainLevel are a 48th of MinDuration, so that their view is a third longer.
func (o *Options) width() int64 { return int64(o.MinDuration) / (48 << mainLevel) }

// Every is how often a series is worth judging.
func (o *Options) Every() time.Duration { return time.Duration(4 * o.width()) }
