// SPDX-License-Identifier: Apache-2.0

package openslo

import (
	"fmt"
	"slices"
	"strings"
)

// nearest is the candidate that a typo was most likely meant to be, or "". Case does not count; otherwise
// two edits may lie between them, one in words of up to four letters.
func nearest(word string, candidates []string) string {
	if s, ok := synonyms[word]; ok && slices.Contains(candidates, s) {
		return s
	}
	best, bestDistance := "", 3
	for _, c := range candidates {
		limit := 2
		if len(c) <= 4 {
			limit = 1
		}
		d := distance(strings.ToLower(word), strings.ToLower(c))
		if d <= limit && d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// synonyms are words that are near to the wrong key.
var synonyms = map[string]string{
	"and": "all", "or": "any",
	"<=": "lte", "<": "lt", ">=": "gte", ">": "gt", "le": "lte", "ge": "gte",
}

// distance is the number of insertions, deletions, replacements and swaps of neighbours that turn a into b.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return max(len(a), len(b)) // no key is that long; keep hostile input cheap
	}
	before, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(b)]
}

// instead says what would be right in place of word: the near miss, or all that is known.
func instead(word string, known []string) string {
	if near := nearest(word, known); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	return "write " + either(known)
}

// either joins alternatives: a, b or c.
func either(words []string) string { return join(words, "or") }

func join(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	n := len(words) - 1
	return strings.Join(words[:n], ", ") + " " + last + " " + words[n]
}

// strs is a list of string-like constants as strings.
func strs[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
