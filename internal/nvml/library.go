// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// DefaultPath is where the dynamic linker finds the driver's library.
const DefaultPath = "libnvidia-ml.so.1"

// ErrUnavailable is matched by errors of Open that a later try can overcome: no library, or no driver.
var ErrUnavailable = errors.New("not available")

// Library is an open NVML. It can be used by several goroutines at once, but not after Close.
type Library struct {
	api    nvml.Interface
	has    [functions]bool
	driver string
	// scrambles says that this driver must be asked for processes by second, and not by go-nvml.
	scrambles bool
	second    [len(lists)]secondVersion
	// tellsReserved says that the driver has told memory with the part that is reserved.
	tellsReserved atomic.Bool
}

// go-nvml binds functions for the whole process. So one of its libraries serves everybody here, and counts who has it open. The
// dynamic linker, too, goes on with the one that is loaded when another file has its path.
var (
	boundMu sync.Mutex
	bound   string // the path
	api     nvml.Interface
)

// Open opens the library at path, or the driver's own where path is empty. It may be called again at any time: NVML counts
// the openings. When it fails, it leaves nothing open.
func Open(path string) (*Library, error) {
	if path == "" {
		path = DefaultPath
	}
	boundMu.Lock()
	defer boundMu.Unlock()
	if bound != "" && bound != path {
		return nil, fmt.Errorf("%s: this process has opened %s already, and can have one NVML: start it again to use the other", path, bound)
	}
	has, err := inspect(path)
	if err != nil {
		return nil, err
	}
	if bound == "" {
		bound, api = path, nvml.New(nvml.WithLibraryPath(path))
	}
	l := &Library{api: api, has: has}
	if ret := l.api.Init(); ret != nvml.SUCCESS {
		return nil, fmt.Errorf("%s: %w: %s", path, ErrUnavailable, whyNot(ret))
	}
	if l.has[fnDriverVersion] {
		if version, ret := l.api.SystemGetDriverVersion(); ret == nvml.SUCCESS {
			l.driver, l.scrambles = version, scramblesProcesses(version)
		}
	}
	if l.scrambles {
		l.second = findSecondVersions(path)
	}
	return l, nil
}

// inspect looks the functions up before any is called: without this, a library that is not NVML would end the process.
func inspect(path string) (has [functions]bool, err error) {
	library := dl.New(path, dl.RTLD_LAZY|dl.RTLD_LOCAL)
	if err := library.Open(); err != nil {
		return has, fmt.Errorf("%s: %w: %w", path, ErrUnavailable, err)
	}
	defer func() { _ = library.Close() }()
	has = lookUp(library.Lookup)
	for _, fn := range needed {
		if !has[fn] {
			return has, fmt.Errorf("%s: no NVML: it has no %s", path, strings.Join(symbols[fn], " and no "))
		}
	}
	return has, nil
}

// whyNot says what to do about an opening that failed.
func whyNot(ret nvml.Return) string {
	switch ret {
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return "the NVIDIA driver is not loaded"
	case nvml.ERROR_NO_PERMISSION:
		return "no permission to talk to the NVIDIA driver: is /dev/nvidiactl there, and may this user open it?"
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return "the library is not of the version of the driver that is loaded; after an upgrade of the driver, start this process again"
	case nvml.ERROR_GPU_NOT_FOUND:
		return "the driver has no GPU"
	case nvml.ERROR_IRQ_ISSUE:
		return "the driver has trouble with the interrupts of a GPU"
	default:
		return "NVML answers " + strconv.Itoa(int(ret))
	}
}

// Close gives all handles back. Nothing of the library may be used any more, or is in use.
func (l *Library) Close() error {
	boundMu.Lock()
	defer boundMu.Unlock()
	if ret := l.api.Shutdown(); ret != nvml.SUCCESS && ret != nvml.ERROR_UNINITIALIZED {
		return fmt.Errorf("closing NVML: it answers %d", int(ret))
	}
	return nil
}

// Driver is the version of the driver, e.g. "590.48.01"; empty where it is not known.
func (l *Library) Driver() string { return l.driver }

// Count is how many GPUs there are.
func (l *Library) Count() (int, Outcome) {
	n, ret := l.api.DeviceGetCount()
	return n, outcome(ret)
}

// Device is the GPU with an index below Count.
func (l *Library) Device(index int) (Device, Outcome) {
	d, ret := l.api.DeviceGetHandleByIndex(index)
	return Device{l, d}, outcome(ret)
}
