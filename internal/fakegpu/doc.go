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
// One process can have one fake: go-nvml ignores a second path. Values that a scenario does not give are not supported.
package fakegpu
