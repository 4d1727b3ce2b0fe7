// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"bytes"
	"os"
	"strconv"
)

// hostMemory reads the memory of the host: of a GPU that shares it (GB10, Jetson), and for which NVML says that it is not
// supported, this is the memory (https://github.com/Syllo/nvtop/issues/466).
func hostMemory(path string) (total, used uint64, ok bool) {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, false
	}
	total, ok = kibibytes(content, "MemTotal:")
	available, ok2 := kibibytes(content, "MemAvailable:")
	if !ok || !ok2 || available > total {
		return 0, 0, false
	}
	return total, total - available, true
}

// kibibytes returns the value of a line such as "MemTotal:  131072 kB" in bytes.
func kibibytes(content []byte, name string) (uint64, bool) {
	_, line, ok := bytes.Cut(content, []byte(name))
	if !ok {
		return 0, false
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	value, ok := bytes.CutSuffix(bytes.TrimSpace(line), []byte(" kB"))
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(string(bytes.TrimSpace(value)), 10, 64)
	return n << 10, err == nil
}
