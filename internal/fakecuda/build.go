// SPDX-License-Identifier: Apache-2.0

package fakecuda

import (
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

//go:embed c
var sources embed.FS

// Capacity is how many bytes a process can allocate.
const Capacity = 80 << 30

// Built is where things are. All of it is in one folder, in which the runtime finds the driver.
type Built struct {
	Dir string
	// Runtime and Driver are libcudart.so.12 and libcuda.so.1.
	Runtime, Driver string
	// Workload is the program that has neither before it is told to load them, StaticWorkload the one with libcudart_static.a
	// in it, which finds the driver only by LD_LIBRARY_PATH, and else has memory of its own.
	Workload, StaticWorkload string
}

// Build makes libraries and programs in dir. It needs gcc.
func Build(dir string) (Built, error) {
	b := Built{
		Dir:     dir,
		Runtime: filepath.Join(dir, "libcudart.so.12"), Driver: filepath.Join(dir, "libcuda.so.1"),
		Workload: filepath.Join(dir, "workload"), StaticWorkload: filepath.Join(dir, "workload-static"),
	}
	work, err := os.MkdirTemp("", "fakecuda")
	if err != nil {
		return b, err
	}
	defer func() { _ = os.RemoveAll(work) }()
	if err := os.CopyFS(work, sources); err != nil {
		return b, err
	}
	archive := filepath.Join(work, "libcudart_static.a")
	for _, command := range [][]string{
		library(b.Driver, "fakecuda.c", "memory.c"),
		library(b.Runtime, "fakecudart.c", "memory.c"),
		append(gcc(), "-c", "fakecudart.c", "memory.c"),
		{"ar", "rcs", archive, "fakecudart.o", "memory.o"},
		append(gcc(), "-o", b.Workload, "workload.c", "-ldl"),
		append(gcc(), "-DSTATIC", "-o", b.StaticWorkload, "workload.c", archive, "-ldl"),
	} {
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Dir = filepath.Join(work, "c")
		if out, err := cmd.CombinedOutput(); err != nil {
			return b, fmt.Errorf("%q: %w\n%s", command, err, out)
		}
	}
	return b, nil
}

// gcc makes functions that start with `push %rbp`: a probe on another instruction costs twenty times as much in a virtual
// machine.
func gcc() []string {
	command := []string{
		"gcc", "-O2", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-fPIC", "-pthread", "-fvisibility=hidden",
		"-fno-omit-frame-pointer", "-fno-shrink-wrap", "-fno-schedule-insns2", "-fno-optimize-sibling-calls",
	}
	if runtime.GOARCH == "amd64" {
		command = append(command, "-fcf-protection=none")
	}
	return command
}

func library(target string, files ...string) []string {
	return append(append(gcc(), "-shared", "-Wl,-soname,"+filepath.Base(target), "-o", target), append(files, "-ldl")...)
}
