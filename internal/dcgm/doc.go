// SPDX-License-Identifier: Apache-2.0

// Package dcgm is a face of libdcgm.so.4, NVIDIA's Data Center GPU Manager: as much of it as it takes to watch fields and read
// their latest values. The library is opened when it is asked for, without cgo, and nothing of it is linked.
//
//	library, err := dcgm.Load("")
//	s, err := library.Connect("localhost:5555", false, time.Second)   // or library.Embedded()
//	err = s.Watch(dcgm.AllGPUs, []uint16{150, 203}, 10*time.Second)
//	err = s.Latest(gpus, []uint16{150, 203}, false, &values)
//
// Structures and numbers are those of dcgm_structs.h and dcgm_fields.h (Apache-2.0, https://github.com/NVIDIA/DCGM).
package dcgm
