// SPDX-License-Identifier: Apache-2.0

package dcgm

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ebitengine/purego"
)

// DefaultLibrary is the name by which the dynamic linker finds DCGM.
const DefaultLibrary = "libdcgm.so.4"

// ErrNotFound is matched by the error of Load where there is no library, or none that can be used.
var ErrNotFound = errors.New("libdcgm cannot be loaded")

// Library is a libdcgm that was loaded. It stays loaded: DCGM has threads of its own.
type Library struct {
	mu       sync.Mutex
	sessions int // guarded by mu: dcgmInit and dcgmShutdown are for the whole process

	init                    func() int32
	shutdown                func() int32
	startEmbedded           func(mode int32, handle *uintptr) int32
	stopEmbedded            func(handle uintptr) int32
	connect                 func(address string, params *connectParams, handle *uintptr) int32
	disconnect              func(handle uintptr) int32
	getEntityGroupEntities  func(handle uintptr, group uint32, entities *uint32, count *int32, flags uint32) int32
	getGPUInstanceHierarchy func(handle uintptr, hierarchy *hierarchy) int32
	fieldGroupCreate        func(handle uintptr, count int32, fields *uint16, name string, group *uintptr) int32
	watchFields             func(handle, group, fieldGroup uintptr, everyMicros int64, keepSeconds float64, keepSamples int32) int32
	updateAllFields         func(handle uintptr, wait int32) int32
	entitiesGetLatestValues func(handle uintptr, entities *Entity, entityCount uint32, fields *uint16, fieldCount, flags uint32, values *byte) int32
}

var (
	loadedMu sync.Mutex
	loaded   = map[string]*Library{} // by path: few
)

// Load opens a libdcgm, by default that of the system. One that was opened before is returned again.
func Load(path string) (*Library, error) {
	if path == "" {
		path = DefaultLibrary
	}
	loadedMu.Lock()
	defer loadedMu.Unlock()
	if l := loaded[path]; l != nil {
		return l, nil
	}
	// Its symbols are not for others: one of them is called errorString.
	handle, err := purego.Dlopen(path, purego.RTLD_LAZY|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, strings.TrimSpace(err.Error()))
	}
	l := &Library{}
	var missing []string
	for name, function := range map[string]any{
		"dcgmInit": &l.init, "dcgmShutdown": &l.shutdown, "dcgmStartEmbedded": &l.startEmbedded, "dcgmStopEmbedded": &l.stopEmbedded,
		"dcgmConnect_v2": &l.connect, "dcgmDisconnect": &l.disconnect, "dcgmGetEntityGroupEntities": &l.getEntityGroupEntities,
		"dcgmGetGpuInstanceHierarchy": &l.getGPUInstanceHierarchy, "dcgmFieldGroupCreate": &l.fieldGroupCreate,
		"dcgmWatchFields": &l.watchFields, "dcgmUpdateAllFields": &l.updateAllFields,
		"dcgmEntitiesGetLatestValues": &l.entitiesGetLatestValues,
	} {
		symbol, err := purego.Dlsym(handle, name)
		if err != nil {
			missing = append(missing, name)
			continue
		}
		purego.RegisterFunc(function, symbol)
	}
	if len(missing) > 0 {
		return nil, errors.Join(fmt.Errorf("%w: %s lacks %s", ErrNotFound, path, strings.Join(missing, ", ")), purego.Dlclose(handle))
	}
	loaded[path] = l
	return l, nil
}

// modeAuto lets an embedded engine update what is watched by itself.
const modeAuto = 1

// connectParams is dcgmConnectV2Params_v2.
type connectParams struct {
	version   uint32
	persist   uint32 //nolint:unused // 0: what is watched is forgotten with the session
	timeoutMs uint32
	isUnix    uint32
}

const connectVersion = 16 | 2<<24

// Connect begins a session with a running host engine, at host:port or at the path of a socket. What it watches is forgotten
// when the session ends.
func (l *Library) Connect(address string, unix bool, timeout time.Duration) (*Session, error) {
	return l.begin(func(handle *uintptr) error {
		params := connectParams{version: connectVersion, timeoutMs: uint32(timeout.Milliseconds())}
		if unix {
			params.isUnix = 1
		}
		return check("dcgmConnect_v2 to "+address, l.connect(address, &params, handle))
	}, l.disconnect)
}

// Embedded begins a session with a host engine inside of this process.
func (l *Library) Embedded() (*Session, error) {
	return l.begin(func(handle *uintptr) error {
		return check("dcgmStartEmbedded", l.startEmbedded(modeAuto, handle))
	}, l.stopEmbedded)
}

func (l *Library) begin(start func(*uintptr) error, stop func(uintptr) int32) (*Session, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sessions == 0 {
		if err := check("dcgmInit", l.init()); err != nil {
			return nil, err
		}
	}
	s := &Session{library: l, stop: stop}
	if err := start(&s.handle); err != nil {
		if l.sessions == 0 {
			err = errors.Join(err, check("dcgmShutdown", l.shutdown()))
		}
		return nil, err
	}
	l.sessions++
	return s, nil
}

// end ends a session, and with the last one what DCGM has running in this process.
func (l *Library) end(s *Session) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := check("end of the session", s.stop(s.handle))
	if l.sessions--; l.sessions == 0 {
		err = errors.Join(err, check("dcgmShutdown", l.shutdown()))
	}
	return err
}
