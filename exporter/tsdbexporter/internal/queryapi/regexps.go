// SPDX-License-Identifier: Apache-2.0

package queryapi

import (
	"regexp/syntax"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/strutil"
)

// writtenOut is how long the regular expressions of a query or a selector are together, with their repetitions written out: a few
// bytes can ask for a program of millions of steps, each of which is made before the query begins, and done for each value of a label.
// What is no regular expression has no length: whoever answers says what is wrong.
func writtenOut(text string) (length int) {
	lexer, item := parser.Lex(text), parser.Item{}
	next := false // whether a string is a regular expression
	replaces := false
	for {
		lexer.NextItem(&item)
		switch item.Typ {
		case parser.EOF, parser.ERROR:
			return length
		case parser.STRING:
			if next || replaces {
				length += lengthOf(item.Val)
			}
		case parser.IDENTIFIER:
			replaces = replaces || item.Val == "label_replace" // whose last argument is one
		}
		next = item.Typ == parser.EQL_REGEX || item.Typ == parser.NEQ_REGEX
	}
}

// lengthOf is the length of one that stands in quotes.
func lengthOf(quoted string) int {
	text, err := strutil.Unquote(quoted)
	if err != nil {
		return 0
	}
	re, err := syntax.Parse(text, syntax.Perl|syntax.DotNL)
	if err != nil {
		return 0
	}
	return expanded(re)
}

// expanded cannot overflow: the parser takes no more than some million.
func expanded(re *syntax.Regexp) int {
	length := 0
	for _, sub := range re.Sub {
		length += expanded(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune)
	case syntax.OpCharClass:
		return 1 + len(re.Rune)/32 // \w has 8, \pL some 1,300
	case syntax.OpRepeat:
		if re.Max < 0 { // as often as one likes
			return length * (re.Min + 1)
		}
		return length * re.Max
	case syntax.OpConcat, syntax.OpCapture:
		return length
	default:
		return length + 1
	}
}
