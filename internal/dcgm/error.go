// SPDX-License-Identifier: Apache-2.0

package dcgm

import "fmt"

// Error is a return code of DCGM, other than success.
type Error int32

// The codes that mean something to callers.
const (
	NotSupported          Error = -6
	Uninitialized         Error = -10
	VersionMismatch       Error = -12
	NoData                Error = -14
	NotWatched            Error = -16
	GPUIsLost             Error = -18
	ResetRequired         Error = -19
	ConnectionNotValid    Error = -21
	InsufficientSize      Error = -31
	ProfilingNotSupported Error = -36
)

var names = map[Error]string{
	-1: "bad parameter", -3: "generic error", -4: "out of memory", -5: "not configured", NotSupported: "not supported",
	-7: "initialization error", -8: "NVML error", -9: "pending", Uninitialized: "uninitialized", -11: "timeout",
	VersionMismatch: "version mismatch", -13: "unknown field", NoData: "no data", -15: "stale data", NotWatched: "not watched",
	-17: "no permission", GPUIsLost: "GPU is lost", ResetRequired: "reset required", -20: "function not found",
	ConnectionNotValid: "the connection to the host engine is not valid", -24: "limit reached", -25: "library not found",
	-29: "requires root", InsufficientSize: "insufficient size", -33: "module not loaded", -34: "in use", -35: "group is empty",
	ProfilingNotSupported: "profiling is not supported", -37: "profiling library error",
	-38: "these profiling fields cannot be collected in one pass", -44: "driver too old", -54: "paused", -56: "NVML is not loaded",
	-57: "driver timeout",
}

// Error is what the code means.
func (e Error) Error() string {
	if name, ok := names[e]; ok {
		return "dcgm: " + name
	}
	return fmt.Sprintf("dcgm: error %d", int32(e))
}

// check makes an error of a return code.
func check(function string, code int32) error {
	if code == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w", function, Error(code))
}
