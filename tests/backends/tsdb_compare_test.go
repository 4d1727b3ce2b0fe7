// SPDX-License-Identifier: Apache-2.0

//go:build backends

package backends

import (
	"encoding/json"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// translate says by what name the exporter knows what Prometheus knows by another: names are escaped, counters end in _total,
// and boundaries that are whole numbers have no decimals.
var translate = strings.NewReplacer(
	`{"llm.tokens/s"}`, `llm_tokens_s`, `"größe"`, `gr__e`, `{"llm.tokens/s", `, `llm_tokens_s{`, `plain`, `plain_total`, `le="1.0"`, `le="1"`)

// translated is an answer of Prometheus in the exporter's names. Besides the names, the zero bucket of a native histogram has
// the width that OTLP's translator gives all.
func translated(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			if text, ok := value.(string); ok && (key == "le" || key == "quantile") {
				if f, err := strconv.ParseFloat(text, 64); err == nil && !math.IsInf(f, 0) {
					value = strconv.FormatFloat(f, 'f', -1, 64)
				}
			}
			if renamed, ok := names[key]; ok {
				key = renamed
			}
			out[key] = translated(value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = translated(v[i])
		}
		return out
	case string:
		if renamed, ok := names[v]; ok {
			return renamed
		}
		if f, err := strconv.ParseFloat(v, 64); err == nil && math.Abs(f) == 0x1p-128 {
			return strings.Repeat("-", map[bool]int{true: 1}[f < 0]) + "1e-128"
		}
	}
	return v
}

var names = map[string]string{"llm.tokens/s": "llm_tokens_s", "größe": "gr__e", "plain": "plain_total"}

// alike says whether two answers are the same, numbers but for the order in which they were added.
func alike(want, got any) bool {
	switch want := want.(type) {
	case map[string]any:
		got, ok := got.(map[string]any)
		if !ok || len(want) != len(got) {
			return false
		}
		for k := range want {
			if _, ok := got[k]; !ok || !alike(want[k], got[k]) {
				return false
			}
		}
		return true
	case []any:
		got, ok := got.([]any)
		if !ok || len(want) != len(got) {
			return false
		}
		for i := range want {
			if !alike(want[i], got[i]) {
				return false
			}
		}
		return true
	case string:
		got, ok := got.(string)
		if want == got || !ok {
			return ok
		}
		a, errA := strconv.ParseFloat(want, 64)
		b, errB := strconv.ParseFloat(got, 64)
		return errA == nil && errB == nil && math.Abs(a-b) <= 1e-13*max(math.Abs(a), math.Abs(b))
	}
	return want == got
}

// comparison asks both.
type comparison struct {
	testing.TB
	theirs, mine store
}

// same compares an answer, its warnings and its error, and returns what both said. What is in order stays so when ordered.
func (c comparison) same(path string, form url.Values, ordered bool) answer {
	c.Helper()
	want, _ := c.theirs.answer(c, path, form)
	got, _ := c.mine.answer(c, path, asked(form))
	want.Data = translated(want.Data)
	want.forgetNews()
	if !ordered {
		want.inOrder()
		got.inOrder()
	}
	if !alike(want.plain(), got.plain()) {
		assert.Equal(c, want, got, "%s %s", path, form)
	}
	return got
}

func asked(form url.Values) url.Values {
	out := url.Values{}
	for key, values := range form {
		for _, v := range values {
			out.Add(key, translate.Replace(v))
		}
	}
	return out
}

// answer is all that the API says.
type answer struct {
	Status    string   `json:"status"`
	ErrorType string   `json:"errorType"`
	Error     string   `json:"error"`
	Warnings  []string `json:"warnings"`
	Infos     []string `json:"infos"`
	Data      any      `json:"data"`

	code        int
	contentType string
}

// forgetNews takes out of an answer what Prometheus says only since the release after the one that the exporter is made of, and
// what a name tells it that the exporter has by another.
func (a *answer) forgetNews() {
	a.Warnings = slices.DeleteFunc(a.Warnings, func(s string) bool { return strings.Contains(s, "sort is ineffective for range queries") })
	a.Infos = slices.DeleteFunc(a.Infos, func(s string) bool {
		return strings.Contains(s, `name does not end in _total/_sum/_count/_bucket: "plain"`)
	})
	if len(a.Warnings) == 0 {
		a.Warnings = nil
	}
	if len(a.Infos) == 0 {
		a.Infos = nil
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range []string{"offsetExpr", "rangeExpr"} {
				if value, ok := v[key]; ok && value == nil {
					delete(v, key)
				}
			}
			for _, value := range v {
				walk(value)
			}
		case []any:
			for _, value := range v {
				walk(value)
			}
		}
	}
	walk(a.Data)
}

// found says whether there is something in it.
func (a answer) found() bool {
	if m, ok := a.Data.(map[string]any); ok {
		if list, ok := m["result"].([]any); ok {
			return len(list) > 0
		}
		return len(m) > 0
	}
	list, ok := a.Data.([]any)
	return ok && len(list) > 0
}

func (a *answer) inOrder() {
	if m, ok := a.Data.(map[string]any); ok {
		if list, ok := m["result"].([]any); ok {
			inOrder(list)
		}
	}
	if list, ok := a.Data.([]any); ok {
		inOrder(list)
	}
}

// plain is the answer as alike takes it.
func (a answer) plain() any {
	text, _ := json.Marshal([]any{a.Status, a.ErrorType, a.Error, a.Warnings, a.Infos}) // it was JSON before
	return []any{string(text), float64(a.code), a.contentType, a.Data}
}
