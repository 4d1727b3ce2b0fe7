// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/ebitengine/purego"
)

// scramblesProcesses reports whether a driver is one of those that write records of processes longer than the header has,
// beyond the memory that they were given: 535.43 to 535.86. It must be asked for version 2 of the lists, whose records are as
// they should be (https://github.com/XuehaiPan/nvitop/pull/79), and never for version 3.
func scramblesProcesses(driver string) bool {
	major, rest, _ := strings.Cut(driver, ".")
	minor, _, _ := strings.Cut(rest, ".")
	n, err := strconv.Atoi(minor)
	return major == "535" && err == nil && n >= 43 && n < 98
}

// secondVersion is the address of version 2 of a list of processes, 0 where the driver has none. go-nvml calls the newest, and
// there is no asking it for another.
type secondVersion uintptr

// findSecondVersions finds those of the lists in a library that is open, and stays so while they are called.
func findSecondVersions(path string) (found [len(lists)]secondVersion) {
	library, err := purego.Dlopen(path, purego.RTLD_LAZY|purego.RTLD_LOCAL)
	if err != nil {
		return found
	}
	defer func() { _ = purego.Dlclose(library) }()
	for i := range lists {
		if address, err := purego.Dlsym(library, lists[i].second); err == nil {
			found[i] = secondVersion(address)
		}
	}
	return found
}

// mostProcesses is more than a device has: a driver that wants room for so many has gone wrong.
const mostProcesses = 1 << 16

func (f secondVersion) get(d nvml.Device) ([]nvml.ProcessInfo, nvml.Return) {
	if f == 0 {
		return nil, nvml.ERROR_FUNCTION_NOT_FOUND
	}
	handle := reflect.ValueOf(d).Field(0).Pointer() // which go-nvml keeps in a structure of its own
	for room := uint32(16); room <= mostProcesses; room *= 2 {
		count, records := room, make([]nvml.ProcessInfo_v2, room)
		result, _, _ := purego.SyscallN(uintptr(f), handle, uintptr(unsafe.Pointer(&count)), uintptr(unsafe.Pointer(&records[0]))) //nolint:gosec // two places that C writes to
		runtime.KeepAlive(records)
		ret := nvml.Return(int32(result))
		if ret != nvml.ERROR_INSUFFICIENT_SIZE {
			return nvml.ProcessInfo_v2Slice(records[:min(count, room)]).ToProcessInfoSlice(), ret
		}
	}
	return nil, nvml.ERROR_INSUFFICIENT_SIZE
}
