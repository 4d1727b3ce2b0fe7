// SPDX-License-Identifier: Apache-2.0

package promsli

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The simple forms of an OTTL condition, which label matchers can say.
var (
	comparison = regexp.MustCompile(`^datapoint\.attributes\[("(?:[^"\\]|\\.)*")\]\s*(==|!=)\s*("(?:[^"\\]|\\.)*"|-?[0-9]+|true|false)\s*`)
	isMatch    = regexp.MustCompile(`^(not\s+)?IsMatch\(\s*datapoint\.attributes\[("(?:[^"\\]|\\.)*")\]\s*,\s*("(?:[^"\\]|\\.)*")\s*\)\s*`)
	conjoined  = regexp.MustCompile(`^and\b\s*`)
)

// matchers translates an OTTL condition: comparisons of a point's attributes with == and !=, and IsMatch, joined by and.
func matchers(condition string) ([]string, error) {
	rest := strings.TrimSpace(condition)
	var list []string
	for rest != "" {
		found, n := firstMatcher(rest)
		if n == 0 {
			return nil, inexpressible(condition)
		}
		list = append(list, found...)
		if rest = rest[n:]; rest == "" {
			break
		}
		and := conjoined.FindString(rest)
		if and == "" || and == rest {
			return nil, inexpressible(condition)
		}
		rest = rest[len(and):]
	}
	return list, nil
}

// firstMatcher translates what a condition begins with, and says how long that is; 0 when it is no simple form.
func firstMatcher(condition string) (list []string, n int) {
	if m := comparison.FindStringSubmatch(condition); m != nil {
		value := m[3]
		if !strings.HasPrefix(value, `"`) {
			value = strconv.Quote(value)
		}
		key, keyOK := unquoted(m[1])
		text, ok := unquoted(value)
		if !ok || !keyOK || text == "" { // to Prometheus an empty label is an absent one, to OTTL it is not
			return nil, 0
		}
		return []string{Label(key) + map[string]string{"==": "=", "!=": "!="}[m[2]] + strconv.Quote(text)}, len(m[0])
	}
	if m := isMatch.FindStringSubmatch(condition); m != nil {
		key, keyOK := unquoted(m[2])
		pattern, ok := unquoted(m[3])
		if !ok || !keyOK {
			return nil, 0
		}
		return matching(Label(key), pattern, m[1] != ""), len(m[0])
	}
	return nil, 0
}

// unquoted is the text of a string in OTTL, if PromQL can hold it too: it knows no bytes that are no text.
func unquoted(quoted string) (string, bool) {
	text, err := strconv.Unquote(quoted)
	return text, err == nil && !strings.ContainsRune(text, utf8.RuneError)
}

// matching is IsMatch, which looks anywhere in the text, as Prometheus, which looks at the whole, has it. An attribute
// that is absent does not match, whatever the pattern; to Prometheus it is an empty text.
func matching(key, pattern string, negated bool) []string {
	whole := strconv.Quote(".*(?:" + pattern + ").*")
	if negated {
		return []string{key + "!~" + whole}
	}
	list := []string{key + "=~" + whole}
	if re, err := regexp.Compile(pattern); err == nil && re.MatchString("") {
		list = append(list, key+`!=""`)
	}
	return list
}

func inexpressible(condition string) error {
	return fmt.Errorf("label matchers cannot say the condition %s: they know datapoint.attributes[…] with ==, != and IsMatch, joined by and",
		strings.Join(strings.Fields(condition), " "))
}
