// SPDX-License-Identifier: Apache-2.0

package dcgmsource

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/dcgm"
	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
)

// Options say where DCGM is, and what is asked of it.
type Options struct {
	// Library is the path of libdcgm.so.4; empty is where the system has it.
	Library string
	// Endpoint is the host engine, host:port or unix:///path. Empty is the usual port of this machine.
	Endpoint string
	// Embedded runs a host engine inside of this process where Endpoint is empty and none answers.
	Embedded bool
	// Interval is how often a group is read: so often, DCGM reads it.
	Interval func(gpu.Group) time.Duration
	// Points are those that may be wanted.
	Points gpu.Set
}

const (
	localEngine = "localhost:5555"
	// localTimeout is for a host engine on this machine; a remote one has the other.
	localTimeout  = time.Second
	remoteTimeout = 5 * time.Second
)

// Source asks DCGM.
type Source struct {
	opts   Options
	now    func() time.Time
	fields []field // that are watched

	session *dcgm.Session // nil while it is not open
	events  func(gpu.Event)
	opened  int64         // in the host engine's time
	ahead   time.Duration // of its clock before ours; negative where it is behind
	gpus    []device
	askAt   time.Time // when those that could not say who they are are asked again
	driver  string
	parts   []dcgm.Part // as they were when the devices were identified
	xids    map[string]int64

	// Scratch.
	ids    []uint16
	whole  []dcgm.Entity
	pieces []dcgm.Entity
	found  []dcgm.Part
	values dcgm.Values
}

// field is a field that is watched, and the points that are made of it.
type field struct {
	id     uint16
	group  gpu.Group
	points []gpu.Point
	mig    bool // watched on instances, too
}

// The fields that say something about a device itself.
const (
	fieldDriver    = 1
	fieldName      = 50
	fieldIndex     = 52
	fieldSerial    = 53
	fieldUUID      = 54
	fieldMinor     = 55
	fieldPCI       = 57
	fieldMIG       = 67
	fieldVisible   = 68 // how CUDA names it: the UUID of an instance
	fieldVBIOS     = 85
	fieldThrottle  = 112
	fieldMemory    = 250
	fieldXid       = 230
	firstProfiling = 1001
	staleIntervals = 3
	// A host engine reads a little late, and its clock can drift apart from ours.
	clockDifference = 2 * time.Second
)

// New returns a source that is not open.
func New(opts Options) *Source {
	return &Source{opts: opts, now: time.Now, fields: fieldsOf(opts.Points)}
}

// fieldsOf are the fields that points are made of. The one for Xids is always among them: it is asked for whatever is wanted,
// and says whether a device is there.
func fieldsOf(points gpu.Set) (fields []field) {
	for p := range gpu.DevicePoints {
		row := &gpu.Rows[p]
		if row.DCGM.ID == 0 || !points.Has(p) || p == gpu.MemoryUtilization {
			continue
		}
		i := slices.IndexFunc(fields, func(f field) bool { return f.id == row.DCGM.ID })
		if i < 0 {
			fields = append(fields, field{id: row.DCGM.ID, group: row.Metric.Group, mig: row.MIG})
			i = len(fields) - 1
		}
		fields[i].points = append(fields[i].points, p)
	}
	return append(fields, field{id: fieldXid, group: gpu.Cheap})
}

// Open begins a session.
func (s *Source) Open(ctx context.Context, events func(gpu.Event)) error {
	library, err := dcgm.Load(s.opts.Library)
	if err != nil {
		return gpu.Unavailable(err)
	}
	if s.session, err = s.connect(library); err != nil {
		return gpu.Unavailable(err)
	}
	s.events, s.xids = events, map[string]int64{}
	s.askAt = s.now().Add(askAgain)
	if err := s.begin(ctx); err != nil {
		return errors.Join(err, s.Close())
	}
	return nil
}

// begin finds out what there is and has it watched. A host engine that does not renew its values is as good as none.
func (s *Source) begin(ctx context.Context) error {
	began := s.now()
	if err := errors.Join(s.identify(), s.watch()); err != nil {
		return err
	}
	s.opened = began.Add(s.ahead).UnixNano()
	var first gpu.Snapshot
	if err := s.Read(ctx, &s.opts.Points, &first); err != nil {
		return gpu.Unavailable(err)
	}
	return nil
}

func (s *Source) connect(library *dcgm.Library) (*dcgm.Session, error) {
	if path, unix := strings.CutPrefix(s.opts.Endpoint, "unix://"); unix {
		return library.Connect(path, true, localTimeout)
	}
	if s.opts.Endpoint != "" {
		return library.Connect(s.opts.Endpoint, false, remoteTimeout)
	}
	session, err := library.Connect(localEngine, false, localTimeout)
	if err == nil || !s.opts.Embedded {
		return session, err
	}
	session, err2 := library.Embedded()
	if err2 != nil {
		return nil, errors.Join(err, err2)
	}
	return session, nil
}

// Close ends the session.
func (s *Source) Close() error {
	if s.session == nil {
		return nil
	}
	err := s.session.Close()
	s.session = nil
	return err
}

// watch lets DCGM read what may be wanted. Fields that it does not take are never told; profiling is taken field by field where
// a device does not have all of it.
func (s *Source) watch() error {
	for g := range gpu.Groups {
		var whole, pieces, profiling, profilingPieces []uint16
		for _, f := range s.fields {
			switch {
			case f.group != g:
			case f.id >= firstProfiling:
				profiling = append(profiling, f.id)
				profilingPieces = append(profilingPieces, f.id)
			default:
				whole = append(whole, f.id)
				if f.mig {
					pieces = append(pieces, f.id)
				}
			}
		}
		every := s.opts.Interval(g)
		if err := s.watchAll(dcgm.AllGPUs, whole, every); err != nil {
			return err
		}
		s.watchSome(dcgm.AllGPUs, profiling, every)
		if len(s.parts) == 0 {
			continue
		}
		if err := s.watchAll(dcgm.AllInstances, pieces, every); err != nil {
			return err
		}
		s.watchSome(dcgm.AllInstances, profilingPieces, every)
	}
	return s.session.Update()
}

func (s *Source) watchAll(group dcgm.Group, fields []uint16, every time.Duration) error {
	for part := range slices.Chunk(fields, dcgm.MaxFields) {
		if err := s.session.Watch(group, part, every); err != nil {
			return err
		}
	}
	return nil
}

func (s *Source) watchSome(group dcgm.Group, fields []uint16, every time.Duration) {
	if s.watchAll(group, fields, every) == nil {
		return
	}
	for i := range fields {
		_ = s.watchAll(group, fields[i:i+1], every) // what is not watched is not told
	}
}
