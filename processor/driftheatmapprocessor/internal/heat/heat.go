// SPDX-License-Identifier: Apache-2.0

package heat

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/otelcol-llm/otelcol-llm/internal/baseline"
	"github.com/otelcol-llm/otelcol-llm/internal/explain"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
	"github.com/otelcol-llm/otelcol-llm/internal/twosample"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// Options are the settings of a Map.
type Options struct {
	// Baseline has the length of the windows as that of its Decay.
	Baseline baseline.Options
	// Dimensions are the keys by which every promise is told apart.
	Dimensions []string
	// MaxCells bounds the cells of all promises. What comes beyond shares one overflow cell a promise.
	MaxCells int
	// Tenant is the dimension whose values do not take each other's cells; "" for none.
	Tenant string
	// TTL is how long, in event time, a cell is remembered without input.
	TTL time.Duration
	// Canary compares two values of a dimension; nil compares none.
	Canary *Canary
	// Closed is given every cell of which a window has something to say, Explained what explains it.
	Closed    func(*Cell)
	Explained func(*Explanation)
}

// Canary is a new version beside the old one, or, with Since, what was before a change and what is after it.
type Canary struct {
	Dimension            int // in Options.Dimensions
	Reference, Candidate string
	// Since is when the change was: the last Windows windows that had ended by then are what each later one is compared with,
	// cell by cell. 0 compares versions.
	Since   int64
	Windows int
	Options twosample.Options
}

// Explanation is a value of a dimension that explains a share of what is bad about a promise.
type Explanation struct {
	SLO              *openslo.SLO
	End              int64 // of the window
	Dimension, Value string
	Share            float64 // NaN when it explains nothing any more
}

// Map is all cells.
type Map struct {
	opts       Options
	promises   []*promise // by their index in the catalog
	length     time.Duration
	begun      bool
	next       int64          // start of the next window to close, once begun
	lastEnd    int64          // end of the youngest window that holds data
	cells      int            // without those of what came beyond MaxCells
	tenant     int            // in Options.Dimensions, -1 for none
	tenants    map[string]int // cells of each
	evicted    uint64
	overflowed uint64   // items for which there was no room since the last call
	beyond     Identity // one of those
	without    int      // cells of the closing window of which is not known what was before a change
	turns      []*Cell  // all cells, in no order
	retired    []Identity
	touched    [Shards]bool // since the last checkpoint

	key        []byte // scratch
	sum        sketch.Distribution
	bins       []twosample.Bin
	parts      []baseline.Part
	candidates []*Cell
	results    []twosample.Result
}

// promise is an SLO and its cells.
type promise struct {
	slo         *openslo.SLO
	of          *Map
	judge       *baseline.Judge // nil where nothing is measured here
	promised    baseline.Promise
	parts       []part        // of a composite
	interval    time.Duration // of which one event is made, where the objective is on a rate; otherwise 0
	fingerprint uint64        // of what is measured
	cells       map[string]*Cell
	free        window.Pool[sums]
	whole       baseline.Cell // over all cells: what is normal for the promise
	limit       float64       // the quantile that is normal for it, NaN where not known
	explained   []explain.Explanation
	explainedAt int64 // the end of the window that is explained
}

// New returns a map of the promises of a catalog.
func New(slos *openslo.Catalog, o Options) (*Map, error) {
	m := &Map{opts: o, length: o.Baseline.Decay.Window, lastEnd: window.Unset, tenant: -1, tenants: map[string]int{}}
	if o.Tenant != "" {
		m.tenant = slices.Index(o.Dimensions, o.Tenant)
	}
	var err error
	m.promises, err = m.compile(slos)
	return m, err
}

func (m *Map) compile(slos *openslo.Catalog) (all []*promise, err error) {
	for i := range slos.SLOs {
		slo := &slos.SLOs[i]
		p := &promise{slo: slo, of: m, cells: map[string]*Cell{}, fingerprint: fingerprint(slo), promised: promised(slo), limit: math.NaN()}
		if t := slo.Indicator.Threshold; t != nil && t.Rate > 0 {
			p.interval = min(t.Rate, m.length)
		}
		all = append(all, p)
	}
	for _, p := range all {
		p.join(all)
	}
	for _, p := range all {
		if !p.slo.Evaluated() {
			continue
		}
		if p.judge, err = baseline.NewJudge(m.opts.Baseline, p.promised); err != nil {
			return nil, fmt.Errorf("slo %q: %w", p.slo.Name, err)
		}
	}
	return all, nil
}

// promised is what cells are held against: the quantile that the objective is about, or the share of good events.
func promised(slo *openslo.SLO) baseline.Promise {
	if slo.Indicator.Threshold == nil {
		return baseline.Promise{Objective: slo.Objective.Target, HigherIsBetter: true}
	}
	p := baseline.Promise{Objective: slo.Objective.Value, Quantile: slo.Objective.Target}
	if slo.Objective.Op == openslo.OpGTE || slo.Objective.Op == openslo.OpGT {
		p.Quantile, p.HigherIsBetter = 1-p.Quantile, true
	}
	return p
}

// fingerprint tells whether an SLO measures what it did: then its baselines go on. They hold what lies on the objective's side of zero.
func fingerprint(slo *openslo.SLO) uint64 {
	text, err := json.Marshal(slo.Indicator)
	if err != nil {
		text = []byte(slo.ID) // an indicator is plain values, of which none is infinite
	}
	if slo.Indicator.Threshold != nil && slo.Objective.Value < 0 {
		text = append(text, '-')
	}
	return xxhash.Sum64(append(text, slo.Unit...))
}

// Update takes over another catalog. A promise is the same while its slo_id and what it measures are.
func (m *Map) Update(slos *openslo.Catalog) error {
	promises, err := m.compile(slos)
	if err != nil {
		return err
	}
	known := map[string]*promise{}
	for _, p := range m.promises {
		known[p.slo.ID] = p
	}
	for _, p := range promises {
		before := known[p.slo.ID]
		if before == nil || before.fingerprint != p.fingerprint || before.interval != p.interval || p.judge == nil {
			continue
		}
		delete(known, p.slo.ID)
		p.cells, p.whole, p.limit, p.free = before.cells, before.whole, before.limit, before.free
		p.explained, p.explainedAt = before.explained, before.explainedAt
		for _, c := range p.cells {
			c.promise = p
			c.SLO = p.slo
		}
		p.adopt(before.promised)
	}
	for _, p := range known {
		for _, c := range p.cells {
			m.retire(c)
		}
	}
	m.promises = promises
	return nil
}

// adopt goes on with cells that were held against another promise.
func (p *promise) adopt(before baseline.Promise) {
	p.judge.Adopt(&p.whole, before)
	for _, c := range p.cells {
		p.judge.Adopt(&c.normal, before)
	}
}

// SLO is the i-th SLO.
func (m *Map) SLO(i int) *openslo.SLO { return m.promises[i].slo }

// Len is the number of cells.
func (m *Map) Len() int { return len(m.turns) }

// TakeOverflowed is for how many items there was no room since the last call, and the first that was found to have none, of no SLO where
// it was found before.
func (m *Map) TakeOverflowed() (n uint64, of Identity) {
	n, of = m.overflowed, m.beyond
	m.overflowed, m.beyond = 0, Identity{}
	return n, of
}

// Evicted is how many cells were forgotten because nothing was heard of them.
func (m *Map) Evicted() uint64 { return m.evicted }

// LastEnd is the end of the youngest window that holds data, or window.Unset.
func (m *Map) LastEnd() int64 { return m.lastEnd }

// Late reports whether the window that holds t is closed.
func (m *Map) Late(t int64) bool { return m.begun && window.Start(t, m.length) < m.next }

// LateBefore is the event time before which everything is late, window.Unset before the first window has closed.
func (m *Map) LateBefore() int64 {
	if !m.begun {
		return window.Unset
	}
	return m.next
}

// WindowStart is the start of the window that holds t.
func (m *Map) WindowStart(t int64) int64 { return window.Start(t, m.length) }

// PaneStart is the start of the shortest span of the i-th SLO that is told apart, and holds t.
func (m *Map) PaneStart(i int, t int64) int64 {
	if p := m.promises[i]; p.interval > 0 {
		start := m.WindowStart(t)
		return start + (t-start)/int64(p.interval)*int64(p.interval)
	}
	return m.WindowStart(t)
}

// overflowKey is no key of values: those begin with a length.
const overflowKey = ""

func appendText(key []byte, text string) []byte {
	return append(binary.AppendUvarint(key, uint64(len(text))), text...)
}

func keyOf(values []string) string {
	key := []byte{0}
	for _, v := range values {
		key = appendText(key, v)
	}
	return string(key)
}

// Cell returns the cell of the i-th SLO for values of the dimensions, "" standing for an absent attribute. Beyond MaxCells it
// is the SLO's overflow cell.
func (m *Map) Cell(i int, values []string) *Cell {
	p := m.promises[i]
	m.key = append(m.key[:0], 0)
	for _, v := range values {
		m.key = appendText(m.key, v)
	}
	if c := p.cells[string(m.key)]; c != nil { // without a copy of the key
		return c
	}
	if m.room(values) {
		return m.open(p, string(m.key), cloned(values), false)
	}
	if m.beyond.SLO == nil {
		m.beyond = Identity{SLO: p.slo, Values: cloned(values), dimensions: m.opts.Dimensions}
	}
	if c := p.cells[overflowKey]; c != nil {
		return c
	}
	return m.open(p, overflowKey, nil, true)
}

// cloned are values of their own: a part of the batch's memory would keep all of it.
func cloned(values []string) []string {
	own := slices.Clone(values)
	for i := range own {
		own[i] = strings.Clone(own[i])
	}
	return own
}

// fairness is of how many times the cells that are left a tenant may have that many. So one takes nine tenths of all at most, another
// nine tenths of the rest, and something is always left for one who comes later (A. K. Choudhury, E. L. Hahne, Dynamic queue length
// thresholds for shared-memory packet switches, IEEE/ACM Trans. Netw. 6, 1998).
const fairness = 9

// room reports whether there is room for a cell more.
func (m *Map) room(values []string) bool {
	left := m.opts.MaxCells - m.cells
	return left > 0 && (m.tenant < 0 || m.tenants[values[m.tenant]] < fairness*left)
}

// count counts a cell that comes or goes.
func (m *Map) count(c *Cell, n int) {
	if c.Overflow {
		return
	}
	m.cells += n
	if m.tenant >= 0 {
		of := c.Values[m.tenant]
		if m.tenants[of] += n; m.tenants[of] == 0 {
			delete(m.tenants, of)
		}
	}
}

func (m *Map) open(p *promise, key string, values []string, overflow bool) *Cell {
	c := &Cell{
		Identity: Identity{SLO: p.slo, Values: values, Overflow: overflow, dimensions: m.opts.Dimensions},
		promise:  p, key: key, at: len(m.turns), newest: window.Unset,
	}
	c.shard = uint8(xxhash.Sum64String(p.slo.ID+"\x00"+key) % Shards)
	p.cells[key] = c
	m.turns = append(m.turns, c)
	m.count(c, 1)
	m.touched[c.shard] = true
	return c
}

// retire forgets a cell.
func (m *Map) retire(c *Cell) {
	delete(c.promise.cells, c.key)
	last := m.turns[len(m.turns)-1]
	m.turns[c.at], last.at = last, c.at
	m.turns = m.turns[:len(m.turns)-1]
	m.count(c, -1)
	m.touched[c.shard] = true
	c.gone = true
	if c.result.End != 0 {
		m.retired = append(m.retired, c.Identity)
	}
}

// TakeRetired returns the cells of which nothing more is told.
func (m *Map) TakeRetired() []Identity {
	gone := m.retired
	m.retired = nil
	return gone
}

// Each calls f for the number-th of so many shares of all cells.
func (m *Map) Each(number, of uint64, f func(*Cell)) {
	n := uint64(len(m.turns))
	for i := number % of * n / of; i < (number%of+1)*n/of; i++ {
		f(m.turns[i])
	}
}
