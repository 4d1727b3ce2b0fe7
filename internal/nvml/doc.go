// SPDX-License-Identifier: Apache-2.0

// Package nvml is a safe face of NVIDIA's management library, through go-nvml.
//
// Underneath, a function that the driver does not have ends the whole process, and so does a call before the opening: no
// recover helps. Here, every function is looked up when the library is opened, and what is not there answers Absent.
//
//	library, err := nvml.Open("")               // libnvidia-ml.so.1; ErrUnavailable when there is none, or no driver: try later
//	device, outcome := library.Device(0)
//	watts, outcome := device.Power()            // mW; only OK has a value
//	err = library.Close()                       // gives every handle back
//
// Blanks, as a driver writes them where it knows nothing, come out as Blank, and never as numbers.
//
// What cannot be helped: go-nvml binds each function once in the life of a process. A library of another path is refused, and
// after an upgrade of the driver in place the process has to be started again; Open says so. Until then it calls nothing that the
// first library did not have.
package nvml
