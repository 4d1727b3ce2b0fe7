// SPDX-License-Identifier: Apache-2.0

package promrules

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// The simple forms of an OTTL condition, which label matchers can say.
var (
	comparison = regexp.MustCompile(`^datapoint\.attributes\["((?:[^"\\]|\\.)*)"\]\s*(==|!=)\s*("(?:[^"\\]|\\.)*"|-?[0-9]+|true|false)\s*`)
	isMatch    = regexp.MustCompile(`^(not\s+)?IsMatch\(\s*datapoint\.attributes\["((?:[^"\\]|\\.)*)"\]\s*,\s*("(?:[^"\\]|\\.)*")\s*\)\s*`)
	conjoined  = regexp.MustCompile(`^and\b\s*`)
)

// matchers translates an OTTL condition: comparisons of a point's attributes with == and !=, and IsMatch, joined by and.
func matchers(condition string) ([]string, error) {
	rest := strings.TrimSpace(condition)
	if rest == "" {
		return nil, nil
	}
	var list []string
	for {
		var found []string
		var n int
		if m := comparison.FindStringSubmatch(rest); m != nil {
			value := m[3]
			if !strings.HasPrefix(value, `"`) {
				value = strconv.Quote(value)
			}
			op := "="
			if m[2] == "!=" {
				op = "!="
			}
			text, err := strconv.Unquote(value)
			if err != nil {
				return nil, inexpressible(condition)
			}
			found, n = []string{label(m[1]) + op + strconv.Quote(text)}, len(m[0])
		} else if m := isMatch.FindStringSubmatch(rest); m != nil {
			pattern, err := strconv.Unquote(m[3])
			if err != nil {
				return nil, inexpressible(condition)
			}
			found, n = matching(label(m[2]), pattern, m[1] != ""), len(m[0])
		} else {
			return nil, inexpressible(condition)
		}
		list = append(list, found...)
		if rest = rest[n:]; rest == "" {
			return list, nil
		}
		and := conjoined.FindString(rest)
		if and == "" {
			return nil, inexpressible(condition)
		}
		rest = rest[len(and):]
	}
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
