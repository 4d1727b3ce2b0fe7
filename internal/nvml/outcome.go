// SPDX-License-Identifier: Apache-2.0

package nvml

import "github.com/NVIDIA/go-nvml/pkg/nvml"

// Outcome is what became of a call. Only OK comes with a value.
type Outcome uint8

const (
	// OK has told.
	OK Outcome = iota
	// Unsupported is what the device does not have: not an error.
	Unsupported
	// Absent is what the driver is too old for, does not let us see, or has none of: not an error.
	Absent
	// Blank is an answer that stands for none.
	Blank
	// Failed is an error that is none of the others.
	Failed
	// Lost is a device that has fallen off the bus or waits for a reset.
	Lost
	// Over is a session that has ended: the library has to be closed and opened anew.
	Over
)

func (o Outcome) String() string {
	return [...]string{"ok", "unsupported", "absent", "blank", "failed", "lost", "over"}[o]
}

func outcome(ret nvml.Return) Outcome {
	switch ret {
	case nvml.SUCCESS:
		return OK
	case nvml.ERROR_NOT_SUPPORTED:
		return Unsupported
	case nvml.ERROR_NO_PERMISSION, nvml.ERROR_NOT_FOUND, nvml.ERROR_FUNCTION_NOT_FOUND, nvml.ERROR_NO_DATA,
		nvml.ERROR_DEPRECATED, nvml.ERROR_VGPU_ECC_NOT_SUPPORTED, nvml.ERROR_NOT_READY, nvml.ERROR_TIMEOUT:
		return Absent
	case nvml.ERROR_GPU_IS_LOST, nvml.ERROR_RESET_REQUIRED:
		return Lost
	case nvml.ERROR_UNINITIALIZED, nvml.ERROR_DRIVER_NOT_LOADED, nvml.ERROR_LIB_RM_VERSION_MISMATCH, nvml.ERROR_GPU_NOT_FOUND:
		return Over
	default:
		return Failed
	}
}

// of32 and of64 are the outcomes of calls that tell a number: all ones stand for none.
func of32(v uint32, ret nvml.Return) (uint32, Outcome) {
	if o := outcome(ret); o != OK {
		return 0, o
	}
	if v == ^uint32(0) {
		return 0, Blank
	}
	return v, OK
}

func of64(v uint64, ret nvml.Return) (uint64, Outcome) {
	if o := outcome(ret); o != OK {
		return 0, o
	}
	if v >= blank64 {
		return 0, Blank
	}
	return v, OK
}

// blank64 is the least of the integers that stand for no value.
const blank64 = 0x7ffffffffffffff0
