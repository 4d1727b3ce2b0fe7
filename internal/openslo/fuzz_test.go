// SPDX-License-Identifier: Apache-2.0

package openslo

import (
	"errors"
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
		if (s.Indicator.Threshold == nil) == (s.Indicator.Ratio == nil) {
			t.Fatalf("not one of threshold and ratio: %+v", s)
		}
		for _, a := range s.AlertPolicies {
			c := a.Condition
			if a.Name == "" || c.Threshold <= 0 || c.Threshold > s.Objective.MaxBurnRate()*1.001 || c.LookbackWindow <= 0 || c.AlertAfter < 0 {
				t.Fatalf("an alert that is not whole, or can never fire: %+v", a)
			}
		}
		if s.Composite != nil && (s.Evaluated() || s.Composite.Share <= 0 || s.Composite.Share > 1) {
			t.Fatalf("a composite that is judged, or weighs nothing: %+v", s)
		}
		ids[s.ID] = true
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
