// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"fmt"
	"regexp"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// Checked are options for openslo with which the OTTL expressions of SLO files are compiled while the files are read:
// what would not compile later is a problem with its line, beside all others.
func Checked() (openslo.Options, error) {
	// A compiler logs at debug level only, and meters nothing.
	set := component.TelemetrySettings{Logger: zap.NewNop()}
	points, err := pointParser(set)
	if err != nil {
		return openslo.Options{}, err
	}
	spans, err := spanParser(set)
	if err != nil {
		return openslo.Options{}, err
	}
	records, err := logParser(set)
	if err != nil {
		return openslo.Options{}, err
	}
	compilers := map[openslo.Signal]compiler{
		openslo.SignalMetrics: {parseWith(points), []string{"datapoint", "metric", "scope", "resource"}},
		openslo.SignalTraces:  {parseWith(spans), []string{"span", "scope", "resource"}},
		openslo.SignalLogs:    {parseWith(records), []string{"log", "scope", "resource"}},
	}
	return openslo.Options{Check: func(signal openslo.Signal, kind openslo.ExpressionKind, expression string) error {
		return compilers[signal].check(kind, expression)
	}}, nil
}

// compiler compiles expressions of one signal.
type compiler struct {
	parse    func(kind openslo.ExpressionKind, expression string) error
	contexts []string // what paths begin with, the signal's own first
}

func parseWith[K any](p ottl.Parser[K]) func(openslo.ExpressionKind, string) error {
	return func(kind openslo.ExpressionKind, expression string) (err error) {
		if kind == openslo.ExpressionValue {
			_, err = p.ParseValueExpression(expression)
		} else {
			_, err = p.ParseCondition(expression)
		}
		return err
	}
}

func (c compiler) check(kind openslo.ExpressionKind, expression string) error {
	err := c.parse(kind, expression)
	if err == nil {
		return nil
	}
	word := openslo.ExpressionCondition
	if kind == openslo.ExpressionValue {
		word = kind
	}
	return fmt.Errorf("is no OTTL %s: %s", word, c.explain(err.Error(), kind))
}

var (
	noContext    = regexp.MustCompile(`^missing context name for path "([^"]+)"`)
	otherContext = regexp.MustCompile(`^context "([^"]+)" from path "([^"]+)" is not valid`)
	noSegment    = regexp.MustCompile(`^segment "([^"]+)" from path "([^"]+)" is not a valid path`)
	foreignSign  = regexp.MustCompile(`(?:invalid input text|unexpected token) "(&&|\|\||=)[" ]`)
)

// explain says in a sentence what the compiler says in a paragraph whose lists change their order from run to run.
func (c compiler) explain(text string, kind openslo.ExpressionKind) string {
	own := c.contexts[0]
	beginnings := strings.Join(c.contexts[1:len(c.contexts)-1], ", ") + " or " + c.contexts[len(c.contexts)-1]
	if m := noContext.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("%s does not say what it belongs to: write %s.%s, or %s before the dot; text stands in quotes", m[1], own, m[1], beginnings)
	}
	if m := otherContext.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("%s is not of this signal: begin with %s, %s", m[2], own, beginnings)
	}
	if m := noSegment.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("%s has an unknown part %q: write e.g. %s.attributes[\"gen_ai.request.model\"]", m[2], m[1], own)
	}
	if m := foreignSign.FindStringSubmatch(text); m != nil {
		word := map[string]string{"&&": "and", "||": "or", "=": "=="}[m[1]]
		return fmt.Sprintf("%s is not known: write %s", m[1], word)
	}
	if kind != openslo.ExpressionValue {
		return fmt.Sprintf("%s: write e.g. %s.attributes[\"model_name\"] == \"qwen2-72b\"", text, own)
	}
	return fmt.Sprintf("%s: write e.g. %s.attributes[\"gen_ai.latency.time_to_first_token\"]", text, own)
}
