// SPDX-License-Identifier: Apache-2.0

package openslo

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// FuzzParse holds that whatever the bytes, Parse returns, gives a catalog or problems and never both, that each
// problem names a file and a line in it, and that a catalog keeps its word about identity.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/*.yaml", "testdata/good/*.yaml", "testdata/examples/*.yaml"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("a: &a {<<: *a}"))
	f.Add([]byte("? [a]\n: b"))
	f.Add([]byte("\xff\xfe"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse(Source{Name: "f", Data: data})
		if err == nil {
			checkCatalog(t, c)
			return
		}
		if c != nil {
			t.Fatal("a catalog besides problems")
		}
		var ps Problems
		if !errors.As(err, &ps) || len(ps) == 0 {
			t.Fatalf("not Problems: %v", err)
		}
		for _, p := range ps {
			if p.File != "f" || p.Line < 1 || p.Message == "" {
				t.Fatalf("no place or no message: %+v", p)
			}
		}
	})
}

func checkCatalog(t *testing.T, c *Catalog) {
	ids := make(map[string]bool)
	for _, s := range c.SLOs {
		if ids[s.ID] || s.Unit == "" || s.Class == "" || s.Objective.Target < 0 || s.Objective.Target >= 1 {
			t.Fatalf("not whole: %+v", s)
		}
		kinds := 0
		for _, is := range []bool{s.Indicator.Threshold != nil, s.Indicator.Ratio != nil, len(s.Indicator.Parts) > 0} {
			if is {
				kinds++
			}
		}
		if kinds != 1 {
			t.Fatalf("not one of threshold, ratio and parts: %+v", s)
		}
		if sel := s.Indicator.Threshold; sel != nil && (sel.Rate < 0 || sel.Range != nil && sel.Range.Min >= sel.Range.Max) {
			t.Fatalf("no rate or range: %+v", sel)
		}
		for _, a := range s.AlertPolicies {
			c := a.Condition
			if a.Name == "" || c.Threshold <= 0 || c.Threshold > s.Objective.MaxBurnRate()*1.001 || c.LookbackWindow <= 0 || c.AlertAfter < 0 {
				t.Fatalf("an alert that is not whole, or can never fire: %+v", a)
			}
		}
		if s.Composite != nil && (len(s.AlertPolicies) > 0 || s.Composite.Share <= 0 || s.Composite.Share > 1) {
			t.Fatalf("a part that alerts, or weighs nothing: %+v", s)
		}
		if s.MinEvents < 1 {
			t.Fatalf("judged without events: %+v", s)
		}
		ids[s.ID] = true
	}
	for _, s := range c.SLOs {
		var shares float64
		for _, part := range s.Indicator.Parts {
			if shares += part.Share; !ids[part.ID] {
				t.Fatalf("no SLO has the id %s", part.ID)
			}
		}
		if len(s.Indicator.Parts) > 0 && math.Abs(shares-1) > 1e-6 {
			t.Fatalf("the shares add up to %v: %+v", shares, s)
		}
	}
	for i := range c.Maintenance {
		m := &c.Maintenance[i]
		for _, id := range m.SLOs {
			if !ids[id] {
				t.Fatalf("no SLO has the id %s", id)
			}
		}
		if start, end, in := m.At(m.Start); !in || !start.Equal(m.Start) || end.Sub(start) != m.Duration || m.Duration <= 0 {
			t.Fatalf("a window that does not hold its beginning: %+v", m)
		}
	}
	for _, p := range c.Policies {
		if p.Window <= 0 || p.ConsecutiveWindows < 1 {
			t.Fatalf("not whole: %+v", p)
		}
		checkCondition(t, p.When, ids)
	}
}

func checkCondition(t *testing.T, c Condition, ids map[string]bool) {
	for _, child := range append(c.All[:len(c.All):len(c.All)], c.Any...) {
		checkCondition(t, child, ids)
	}
	if len(c.All) == 0 && len(c.Any) == 0 && len(c.IDs) == 0 {
		t.Fatalf("an empty condition: %+v", c)
	}
	for _, id := range c.IDs {
		if !ids[id] {
			t.Fatalf("no SLO has the id %s", id)
		}
	}
}
