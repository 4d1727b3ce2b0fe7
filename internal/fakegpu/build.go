// SPDX-License-Identifier: Apache-2.0

package fakegpu

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// NVMLLibrary is the name of the fake NVML in the folder that Build is given.
const NVMLLibrary = "libnvidia-ml.so.1"

//go:embed c
var sources embed.FS

// keys are the numbers that a device can have: those of c/keys.def.
var keys = func() map[string]bool {
	text, err := sources.ReadFile("c/keys.def")
	if err != nil {
		panic(err) // embedded
	}
	found := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^X\(\w+, "([^"]+)"\)`).FindAllSubmatch(text, -1) {
		found[string(m[1])] = true
	}
	return found
}()

// nvmlSources make the fake NVML.
var nvmlSources = []string{"scenario.c", "fakenvml.c", "fakestate.c", "fakeprocess.c", "fakemig.c", "fakeevent.c", "fakegpm.c"}

// Build makes the fake NVML in dir and returns its path. The functions in missing are not in it: looking one up fails, as
// with a driver that is older than they are. It needs gcc and the module go-nvml, whose nvml.h it is compiled against.
func Build(dir string, missing ...string) (string, error) {
	header, err := HeaderDir()
	if err != nil {
		return "", err
	}
	target := filepath.Join(dir, NVMLLibrary)
	return target, compile(target, nvmlSources, missing, "-DNVML_NO_UNVERSIONED_FUNC_DEFS=1", "-I"+header)
}

// compile makes a library of the named sources, without the missing functions.
func compile(target string, names, missing []string, flags ...string) error {
	work, err := os.MkdirTemp("", "fakegpu")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	if err := os.CopyFS(work, sources); err != nil {
		return err
	}
	script := "{ global: *;"
	if len(missing) > 0 {
		script += " local: " + strings.Join(missing, "; ") + ";"
	}
	if err := os.WriteFile(filepath.Join(work, "exports"), []byte(script+" };\n"), 0o600); err != nil {
		return err
	}
	args := []string{
		"-O2", "-Wall", "-Wextra", "-fPIC", "-shared", "-pthread", "-fvisibility=hidden",
		"-Wl,-soname," + filepath.Base(target), "-Wl,--version-script," + filepath.Join(work, "exports"),
	}
	args = append(args, flags...)
	// The new library comes by rename: one that is in use must not change under its users.
	args = append(args, "-o", filepath.Join(work, "library"))
	for _, name := range names {
		args = append(args, filepath.Join(work, "c", name))
	}
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("gcc for %s: %w\n%s", target, err, out)
	}
	built, err := os.ReadFile(filepath.Join(work, "library"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(target+".new", built, 0o755); err != nil { //nolint:gosec // a library is readable by all
		return err
	}
	return os.Rename(target+".new", target)
}

// HeaderDir is where nvml.h is: the module that the receiver uses, so that both have the same ABI.
func HeaderDir() (string, error) {
	var stderr bytes.Buffer
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml")
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go list for go-nvml: %w\n%s", err, stderr.Bytes())
	}
	dir := strings.TrimSpace(string(out))
	if dir == "" {
		return "", errors.New("go list for go-nvml: the module is not here; run go mod download github.com/NVIDIA/go-nvml")
	}
	return filepath.Join(dir, "pkg", "nvml"), nil
}
