// SPDX-License-Identifier: Apache-2.0

package gpu

// XidMeaning is what a code means, by NVIDIA's catalog (https://docs.nvidia.com/deploy/xid-errors); empty where the table
// does not have it.
func XidMeaning(code uint64) string {
	for i := range KnownXids {
		if KnownXids[i].Code == code {
			return KnownXids[i].Meaning
		}
	}
	return ""
}

// KnownXids are the codes that mean trouble of a device or of what runs on it. Their counters are there from the start.
var KnownXids = [...]struct {
	Code    uint64
	Meaning string
}{
	{13, "graphics engine exception"},
	{31, "memory page fault"},
	{43, "stopped processing"},
	{45, "preemptive cleanup after earlier errors"},
	{48, "double bit ECC error"},
	{61, "internal micro-controller breakpoint or warning"},
	{62, "internal micro-controller halt"},
	{63, "row remapping or page retirement recorded"},
	{64, "row remapping or page retirement could not be recorded"},
	{74, "NVLink error"},
	{79, "fallen off the bus"},
	{92, "high rate of single bit ECC errors"},
	{94, "contained memory error"},
	{95, "uncontained memory error"},
	{109, "context switch timeout"},
	{119, "GSP does not answer"},
	{120, "GSP error"},
	{140, "unrecovered ECC error"},
}
