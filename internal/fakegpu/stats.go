// SPDX-License-Identifier: Apache-2.0

package fakegpu

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
)

// Stats are what a fake library has counted: what is open, so that a leak shows, and what should not have happened.
type Stats struct {
	Initialised    uint64 // openings without their shutdown
	EventSets      uint64 // not freed yet
	GPMSamples     uint64 // not freed yet
	Calls          uint64
	Uninitialised  uint64 // calls before the opening or after the shutdown
	Invalid        uint64 // handles, event sets and samples that were not, or not any more
	Waiting        uint64 // who waits for events now
	PcieThroughput uint64 // calls of the function that blocks
	Reloads        uint64 // of the scenario
}

// NVMLStats reads what the fake NVML, in whatever process, counts for the scenario at path.
func NVMLStats(path string) (Stats, error) { return readStats(path + ".nvml.stats") }

func readStats(path string) (Stats, error) {
	var s Stats
	data, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	if err := binary.Read(bytes.NewReader(data), binary.NativeEndian, &s); err != nil {
		return s, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}
