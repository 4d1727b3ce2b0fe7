// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

const (
	width  = 110 // of a line
	indent = 11  // of the text behind a field's name
)

// page lays text out.
type page struct {
	w     io.Writer
	begun bool
}

func (p *page) title(title, below string) {
	if p.begun {
		fmt.Fprintln(p.w)
	}
	p.begun = true
	fmt.Fprintf(p.w, "%s\n%s\n%s\n", title, strings.Repeat("=", utf8.RuneCountInString(title)), below)
}

// field writes paragraphs beside a name; without any it writes nothing.
func (p *page) field(name string, paragraphs ...string) {
	for i, text := range paragraphs {
		if i > 0 {
			name = ""
		}
		for _, line := range wrap(text, width-indent) {
			fmt.Fprintf(p.w, "%-*s%s\n", indent, name, line)
			name = ""
		}
	}
}

// wrap breaks text into lines of at most n characters, between words.
func wrap(text string, n int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > n {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// list is a, b and c.
func list(items []string, last string) string {
	if len(items) < 2 {
		return strings.Join(items, "")
	}
	n := len(items) - 1
	return strings.Join(items[:n], ", ") + " " + last + " " + items[n]
}

// number is a number with four significant digits behind the point at most, and commas between thousands.
func number(f float64) string {
	digits := 4
	switch small := math.Abs(f); {
	case small >= 100:
		digits = 2
	case small > 0 && small < 0.001: // four significant digits, and not 0
		digits = 3 - int(math.Floor(math.Log10(small)))
	}
	s := strconv.FormatFloat(f, 'f', digits, 64)
	s = strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
	whole, rest, fraction := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0 && whole[i-1] != '-'; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction {
		return whole + "." + rest
	}
	return whole
}

func percent(share float64) string { return number(share*100) + " %" }

// about is a share to a tenth of a percent, or to three digits where it is smaller.
func about(share float64) string {
	p := share * 100
	if p >= 1 {
		return number(math.Round(p*10)/10) + " %"
	}
	return strconv.FormatFloat(p, 'g', 3, 64) + " %"
}

// quantity is a value in an OpenMetrics base unit as people say it.
func quantity(v float64, unit string) string {
	switch {
	case unit == "seconds" && v != 0 && math.Abs(v) < 1:
		return number(v*1000) + " ms"
	case unit == "seconds":
		return number(v) + " s"
	case unit == "ratio":
		return number(v) + " (" + percent(v) + ")"
	default:
		return number(v) + " " + strings.ReplaceAll(strings.ReplaceAll(unit, "_per_second", " a second"), "_", " ")
	}
}

func ordinal(n float64) string {
	s := number(n)
	if strings.Contains(s, ".") {
		return s + "th"
	}
	switch i := int(n + 0.5); {
	case i%100 >= 11 && i%100 <= 13:
		return s + "th"
	case i%10 == 1:
		return s + "st"
	case i%10 == 2:
		return s + "nd"
	case i%10 == 3:
		return s + "rd"
	}
	return s + "th"
}

// span is a length of time as people write it: 1d 9h 36m.
func span(d time.Duration) string {
	d = d.Round(time.Second)
	if d < time.Minute {
		return number(d.Seconds()) + "s"
	}
	var parts []string
	for _, u := range []struct {
		of   time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if n := d / u.of; n > 0 {
			parts = append(parts, fmt.Sprintf("%d%s", n, u.name))
			d -= n * u.of
		}
	}
	return strings.Join(parts, " ")
}

// words is a duration shorthand in words: 28 days.
func words(d openslo.Duration) string {
	unit := map[byte]string{'m': "minute", 'h': "hour", 'd': "day", 'w': "week", 'M': "month", 'Q': "quarter", 'Y': "year"}[d.Unit]
	if d.Count == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", d.Count, unit)
}

// window says over what time a promise is kept or not.
func window(w openslo.TimeWindow) string {
	if w.Rolling {
		return "over the last " + strings.TrimPrefix(words(w.Duration), "1 ")
	}
	return fmt.Sprintf("in every window of %s, counted from %s in %s", words(w.Duration), w.Start.Format("2006-01-02 15:04"), w.Location)
}
