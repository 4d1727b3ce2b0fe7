// SPDX-License-Identifier: Apache-2.0

// Package fakegpu makes faithful fakes of NVIDIA's libraries, for tests and demonstrations without a GPU.
//
//	library, err := fakegpu.Build(dir)          // libnvidia-ml.so.1, by gcc, against the header of go-nvml
//	world := fakegpu.H100()                     // values of a real machine
//	err = world.Write(scenario)                 // scenario is what the environment variable fakegpu.Variable names
//	world.GPUs[0].Set("temperature", 91)        // and while it runs:
//	world.Xid(0, 79)
//	world.Fail("*", 0, 15)                      // the GPU is lost
//	err = world.Write(scenario)
//
// The fakes keep to what NVML does where a reader could go wrong: structures with another version are refused, buffers that
// are too small get INSUFFICIENT_SIZE and the size needed, instances refuse what MIG does not have, nothing works before
// the opening, PCIe throughput blocks 20 ms, functions that an older driver lacks are not there. What is open is counted.
//
// The file has one fact a line, in this order, and # begins a remark:
//
//	system driver 590.48.01                  also nvml, cuda, fields, wide_processes
//	gpu 0 uuid GPU-00000000-…                the GPU's index, a key of c/keys.def, gpm.N or field.N, and the value; "blank" is all ones
//	gpu 0 temperature 59
//	mig 0 2 memory.used 9437184              the GPU's index, the instance's, a key and the value
//	process 0 compute 4242 1048576 -1 -1 50 10 0 0
//	                                         GPU, kind, pid, bytes, GPU and compute instance (−1: none), percent of SM (−1: no
//	                                         sample), memory, encoder and decoder
//	rule nvmlDeviceGetTemperature 0 -1 15 0  function or *, GPU and instance (−1: all; instance −2: none), return code, microseconds that it takes
//	event 1 0 8 79 -1 -1                     number (grows), GPU, type, Xid, GPU and compute instance
//
// One process can have one fake: go-nvml ignores a second path. Values that a scenario does not give are not supported.
package fakegpu
