// SPDX-License-Identifier: Apache-2.0

// Package device says on which GPU or MIG device a process allocates, where its environment leaves no other: an allocation
// itself does not tell.
package device

import (
	"bytes"
	"strings"
)

// Environment is what decides which devices a process sees.
type Environment struct {
	// CUDA is CUDA_VISIBLE_DEVICES, by which the driver chooses among the devices that are there.
	CUDA string
	// Chosen says that CUDA is set, be it to nothing.
	Chosen bool
	// Container is NVIDIA_VISIBLE_DEVICES, by which a runtime puts devices into a container. Elsewhere it means nothing.
	Container string
}

const (
	cudaKey      = "CUDA_VISIBLE_DEVICES="
	containerKey = "NVIDIA_VISIBLE_DEVICES="
)

// Parse reads a /proc/PID/environ: what the process was started with. Of a key that stands there twice the first counts, as
// for getenv.
func Parse(environ []byte) (e Environment) {
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if value, ok := bytes.CutPrefix(entry, []byte(cudaKey)); ok && !e.Chosen {
			e.CUDA, e.Chosen = string(value), true
		}
		if value, ok := bytes.CutPrefix(entry, []byte(containerKey)); ok && e.Container == "" {
			e.Container = string(value)
		}
	}
	return e
}

// Only returns the UUID of the only device that a process can use; empty where there may be others, or none. Contained is
// whether it runs in a container, and given the device that somebody who knows, such as the kubelet, has given to that; empty
// where nobody does.
func (e Environment) Only(contained bool, given string) string {
	only := given
	if !IsUUID(only) {
		only = ""
	}
	if contained {
		switch list := strings.TrimSpace(e.Container); {
		case IsUUID(list):
			only = list
		case list == "" || list == "void" || list == "none" || strings.HasPrefix(list, "/"):
			// Devices come another way: by CDI, or by volume mounts.
		default:
			only = "" // all, several, or a number that means something to the runtime alone
		}
	}
	if !e.Chosen {
		return only
	}
	switch list := strings.TrimSpace(e.CUDA); {
	case IsUUID(list):
		return list
	case only != "" && (list == "0" || len(list) > len("GPU-") && strings.HasPrefix(only, list)): // the driver takes a UUID's first digits, too
		return only
	}
	return ""
}

// IsUUID reports whether a text is the whole UUID of a GPU or of a MIG device: GPU-…, MIG-…, and, before driver R470,
// MIG-GPU-…/GPU instance/compute instance.
func IsUUID(text string) bool {
	rest, mig := strings.CutPrefix(text, "MIG-")
	rest, gpu := strings.CutPrefix(rest, "GPU-")
	if mig && gpu {
		uuid, instances, ok := strings.Cut(rest, "/")
		gi, ci, both := strings.Cut(instances, "/")
		return ok && both && isDecimal(gi) && isDecimal(ci) && isUUID(uuid)
	}
	return (mig || gpu) && isUUID(rest)
}

func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		switch i {
		case 8, 13, 18, 23:
			if s[i] != '-' {
				return false
			}
		default:
			if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return false
			}
		}
	}
	return true
}

func isDecimal(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
