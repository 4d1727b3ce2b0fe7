// SPDX-License-Identifier: Apache-2.0

package promsli

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// Span is a duration in PromQL.
func Span(d time.Duration) string { return model.Duration(d).String() }

// Number is a number in PromQL, without the noise of binary fractions.
func Number(f float64) string { return strconv.FormatFloat(tidy(f), 'g', -1, 64) }

// tidy is the number that was meant: 0.8, not 0.8000000000000002.
func tidy(f float64) float64 {
	t, err := strconv.ParseFloat(strconv.FormatFloat(f, 'g', 12, 64), 64)
	if err != nil {
		return f
	}
	return t
}

// By is the clause that keeps the group's labels: "by (model_name) ", or nothing.
func By(groupBy []string) string {
	if len(groupBy) == 0 {
		return ""
	}
	keys := make([]string, len(groupBy))
	for i, key := range groupBy {
		keys[i] = Label(key)
	}
	slices.Sort(keys)
	return " by (" + strings.Join(keys, ", ") + ") "
}

// Label is an attribute key as Prometheus spells it.
func Label(key string) string {
	if key == "" || key[0] >= '0' && key[0] <= '9' {
		key = "key_" + key
	}
	return escape(key)
}

func escape(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_':
			return r
		}
		return '_'
	}, name)
}
