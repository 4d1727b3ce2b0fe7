// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pipeline"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/connector/tenantroutingconnector/internal/limit"
	"github.com/otelcol-llm/otelcol-llm/internal/readmostly"
)

// router routes one signal. Those of one connector share nothing: a tenant has its queues and limits for each signal.
type router[T comparable] struct {
	cfg     *Config
	set     connector.Settings
	signal  *signal[T]
	source  *source
	mapping *mapping
	groups  []group[T] // the last one is of all who are in no other
	targets map[pipeline.ID]*target[T]
	own     *telemetry
	now     func() time.Time
	largest int // Config.largest

	host  component.Host
	store *store // nil without a storage
	index *index // nil without a storage, or when it cannot be opened
	table *tableFile
	// leftovers are pipelines of tenants whose queues in the storage may not be empty. It is not written to after Start.
	leftovers map[string][]pipeline.ID
	unopened  atomic.Int64  // of them, those that wait for room
	room      chan struct{} // tells that there is some

	tenants            *readmostly.Map[string, *tenantOf[T]]
	fallback, overflow *tenantOf[T]
	strangers          [reasons]*tenantOf[T] // who gets what is unknownName or invalidName
	requests           sync.Pool             // of *request[T]

	// known are all tenants whose queues may be open, fallback and overflow too.
	knownMu sync.Mutex
	known   map[*tenantOf[T]]struct{}

	started, stopped atomic.Bool
	stop             context.CancelFunc // ends the goroutines; nil before Start
	running          sync.WaitGroup
	cut              context.Context // is done when what is being sent has to end
	cutOff           context.CancelFunc
	log              complaints
	unheard          sync.Once // it was told that a header does not count
}

// Capabilities tell that data is moved out of what comes.
func (*router[T]) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: true}
}

// newRouter makes the router of a signal. of is the pipelines that it can send to.
func newRouter[T comparable](set connector.Settings, cfg *Config, s *signal[T], of map[pipeline.ID]sendFunc[T]) (*router[T], error) {
	from, err := newSource(cfg.TenantFrom)
	if err != nil {
		return nil, err
	}
	from.trusting = cfg.TrustMetadata
	r := &router[T]{
		cfg: cfg, set: set, signal: s, source: from, mapping: newMapping(cfg.Mapping.Template, 4*cfg.MaxTenants), now: time.Now, largest: cfg.largest(),
		targets: map[pipeline.ID]*target[T]{}, known: map[*tenantOf[T]]struct{}{}, room: make(chan struct{}, 1), tenants: readmostly.New[string, *tenantOf[T]](cfg.MaxTenants),
	}
	r.requests.New = func() any { return &request[T]{index: map[*tenantOf[T]]int{}} }
	r.cut, r.cutOff = context.WithCancel(context.Background())
	for id, send := range of {
		r.targets[id] = &target[T]{id, send}
	}
	if err := r.groupTenants(); err != nil {
		return nil, err
	}
	r.makeSpecial()
	return r, nil
}

// makeSpecial makes the tenants that are there from the start.
func (r *router[T]) makeSpecial() {
	r.fallback, r.overflow = r.meet(r.cfg.DefaultTenant), nil
	r.overflow = r.fallback
	if r.cfg.OverflowTenant != r.cfg.DefaultTenant {
		r.overflow = r.meet(r.cfg.OverflowTenant)
	}
	for _, why := range []reason{unknownName, invalidName} {
		r.strangers[why] = r.fallback
		if r.cfg.OnUnknown != ToDefault {
			r.strangers[why] = nobody[T]()
		}
	}
}

// meet is a tenant that was not known before.
func (r *router[T]) meet(id string) *tenantOf[T] {
	t := r.newTenant(id)
	r.knownMu.Lock()
	defer r.knownMu.Unlock()
	r.known[t] = struct{}{}
	return t
}

// groupTenants resolves the names of pipelines.
func (r *router[T]) groupTenants() error {
	var errs []error
	resolve := func(key string, ids []pipeline.ID) (to []*target[T]) {
		for i, id := range ids {
			if t := r.targets[id]; t != nil {
				to = append(to, t)
				continue
			}
			errs = append(errs, fmt.Errorf("%s::%s[%d]: no pipeline %q has %q among its receivers", key, r.signal.id, i, id, r.set.ID))
		}
		return to
	}
	named := slices.Clone(r.cfg.DefaultPipelines.of(r.signal.id))
	for i := range r.cfg.Groups {
		named = append(named, r.cfg.Groups[i].Pipelines.of(r.signal.id)...)
	}
	everybody := group[T]{limits: r.cfg.Limits, targets: resolve("default_pipelines", r.cfg.DefaultPipelines.of(r.signal.id))}
	var others []string
	for _, id := range r.sorted() {
		if slices.Contains(named, id) {
			continue
		}
		if len(r.cfg.DefaultPipelines.of(r.signal.id)) == 0 {
			everybody.targets = append(everybody.targets, r.targets[id])
		} else {
			others = append(others, id.String())
		}
	}
	if len(others) > 0 {
		errs = append(errs, fmt.Errorf("%s: nothing would be sent to %q: name it in default_pipelines or in a group", r.signal.id, others))
	}
	for i := range r.cfg.Groups {
		g := &r.cfg.Groups[i]
		of := group[T]{patterns: g.Tenants, limits: r.cfg.Limits, targets: resolve(fmt.Sprintf("groups[%d]::pipelines", i), g.Pipelines.of(r.signal.id))}
		if len(g.Pipelines.of(r.signal.id)) == 0 {
			of.targets = everybody.targets
		}
		if l := g.Limits.Get(); l != nil {
			of.limits = *l
			of.limits.Burst = cmp.Or(l.Burst, r.cfg.Limits.Burst)
		}
		r.groups = append(r.groups, of)
	}
	if len(everybody.targets) == 0 && len(errs) == 0 {
		errs = append(errs, fmt.Errorf("default_pipelines::%s: names no pipeline, and groups take all there are", r.signal.id))
	}
	r.groups = append(r.groups, everybody)
	return errors.Join(errs...)
}

// sorted are the ids of all pipelines behind the connector.
func (r *router[T]) sorted() []pipeline.ID {
	ids := make([]pipeline.ID, 0, len(r.targets))
	for id := range r.targets {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b pipeline.ID) int { return cmp.Compare(a.String(), b.String()) })
	return ids
}

// consume routes what came. An error means that nothing of it was taken, and all of it is there again: a client sends the
// whole again, and what was taken would be there twice. So where only some of its tenants are refused, what is theirs is
// dropped.
func (r *router[T]) consume(ctx context.Context, data T) error {
	if !r.started.Load() || r.stopped.Load() {
		return errStopped
	}
	q := r.requests.Get().(*request[T])
	defer func() {
		for i := range q.parts {
			if part := q.parts[i].data; part != data { // queues hold it for themselves
				r.signal.free(part)
			}
		}
		q.reset()
		r.requests.Put(q)
	}()
	name, unheard := r.source.ofRequest(client.FromContext(ctx))
	if unheard != "" {
		r.unheard.Do(func() {
			r.set.Logger.Warn("a header names a tenant and does not count, since no authenticator says who the client is: see trust_metadata", zap.String("header", unheard))
		})
	}
	if name != "" {
		items := r.signal.items(data)
		if items == 0 {
			return nil // nor is a tenant made for it
		}
		owner, as, why := r.named(name)
		q.stray(why, as, items)
		r.signal.markAll(data, owner)
		q.parts = append(q.parts, part[T]{owner: owner, data: data})
	} else {
		r.signal.split(r, data, q)
	}
	r.strays(q)
	return r.deliver(ctx, data, q)
}

// deliver sends the parts of a request to their tenants.
func (r *router[T]) deliver(ctx context.Context, data T, q *request[T]) error {
	now := r.now()
	refusal := r.admit(q, now)
	taken := false
	r.openAll(ctx, q)
	for i := range q.parts {
		p := &q.parts[i]
		if p.owner.id == "" || p.why != noReason || p.items == 0 {
			continue
		}
		if err := r.send(ctx, p, now); err != nil {
			p.why = reasonOf(err)
			if r.tells(p.why) && (refusal == nil || consumererror.IsPermanent(refusal)) { // what others can send again, they have to hear of
				refusal = err
			}
			continue
		}
		taken = taken || p.items > 0
	}
	if refusal == nil || taken {
		r.drop(q)
		return nil
	}
	if q.parts[0].data != data {
		r.signal.join(data, q.parts)
	}
	if consumererror.IsPermanent(refusal) { // it is not sent again
		r.drop(q)
	} else {
		r.refuse(q)
	}
	return refusal
}

// tells reports whether a sender is to hear that something was not taken. With on_excess: drop, who sends hears of what is wrong
// with the gateway, and not of what is wrong with one tenant.
func (r *router[T]) tells(why reason) bool {
	return why == notTaken || r.cfg.OnExcess == RefuseExcess
}

// admit asks the limits of all tenants of a request, and is the answer when none has room.
func (r *router[T]) admit(q *request[T], now time.Time) (refusal error) {
	var longest time.Duration
	for i := range q.parts {
		p := &q.parts[i]
		p.items = r.signal.items(p.data)
		t := p.owner
		if t.id == "" {
			if r.cfg.OnUnknown == Reject && refusal == nil {
				refusal = notKnown(q.strays)
			}
			continue
		}
		if t.rates == nil || p.items == 0 {
			continue
		}
		bytes := 0
		if t.rates.CountsBytes() {
			bytes = r.signal.bytes(p.data)
		}
		exceeds, wait := t.rates.Take(now, p.items, bytes)
		if exceeds == limit.None {
			continue
		}
		p.why = overItems
		if exceeds == limit.Bytes {
			p.why = overBytes
		}
		if wait > longest && r.tells(p.why) {
			longest = wait
			refusal = tooMuch(t.id, p.why, wait)
		}
	}
	return refusal
}

// send hands a part to its tenant's queues.
func (r *router[T]) send(ctx context.Context, p *part[T], now time.Time) error {
	t := r.enter(p)
	defer t.mu.RUnlock()
	if t.closed {
		return errStopped
	}
	t.used.Store(now.UnixNano())
	if !t.noted.Load() { // the first tells for all of a request
		if err := r.note(ctx, t); err != nil {
			return err
		}
	}
	if t.series != nil {
		if n := r.signal.series(p.data, t.series, now); n > 0 {
			r.dropped(t, overSeries, n)
			p.items -= n
		}
	}
	if r.largest > 0 && r.signal.bytes(p.data) > r.largest {
		if n := r.signal.fit(p.data, r.largest); n > 0 {
			r.dropped(t, tooLarge, n)
			p.items -= n
		}
	}
	if p.items == 0 {
		return nil
	}
	if r.cfg.Queue.HasValue() {
		ctx = r.stripped(ctx)
	}
	var failed error
	failures, last := 0, len(t.queues)-1
	for i, queue := range t.queues {
		data := p.data
		if i < last {
			data = r.signal.clone(data) // each pipeline has its own, and may change it
			defer r.signal.free(data)
		}
		if err := queue.send(ctx, data); err != nil {
			failed = err
			failures++
		}
	}
	switch {
	case failures > last:
		return failed
	case failures > 0:
		r.dropped(t, reasonOf(failed), p.items*failures)
	}
	t.accepted.Add(int64(p.items))
	return nil
}

// enter holds the queues of a part's tenant open, until its mu is unlocked for reading.
func (r *router[T]) enter(p *part[T]) *tenantOf[T] {
	for {
		t := p.owner
		t.mu.RLock()
		switch {
		case t.closed && !r.stopped.Load(): // it was idle until now, and is new again
			t.mu.RUnlock()
			if p.owner, _ = r.tenant(t.id); p.owner.id != t.id {
				r.signal.markAll(p.data, p.owner)
			}
		case t.opened || t.closed:
			return t
		default:
			t.mu.RUnlock()
			r.open(t)
		}
	}
}
