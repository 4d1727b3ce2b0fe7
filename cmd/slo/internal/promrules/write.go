// SPDX-License-Identifier: Apache-2.0

package promrules

import (
	"io"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/otelcol-llm/otelcol-llm/internal/promsli"
)

// yamlRule is a rule in the order in which people write one.
type yamlRule struct {
	Record      string            `yaml:"record,omitempty"`
	Alert       string            `yaml:"alert,omitempty"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for,omitempty"`
	Labels      map[string]string `yaml:"labels,omitempty"`
	Annotations map[string]string `yaml:"annotations,omitempty"`
}

type yamlGroup struct {
	Name     string     `yaml:"name"`
	Interval string     `yaml:"interval,omitempty"`
	Rules    []yamlRule `yaml:"rules"`
}

// Write writes groups as a Prometheus rule file, evaluated every interval or, where that is zero, as often as Prometheus
// is configured to. What was skipped stands in its head.
func Write(w io.Writer, files []string, groups []Group, skipped []Skipped, interval time.Duration) error {
	list := &yaml.Node{Kind: yaml.SequenceNode}
	for i := range groups {
		g := &groups[i]
		out := yamlGroup{Name: g.Name}
		if interval > 0 {
			out.Interval = promsli.Span(interval)
		}
		for _, r := range g.Rules {
			one := yamlRule{Record: r.Record, Alert: r.Alert, Expr: r.Expr, Labels: r.Labels, Annotations: r.Annotations}
			if r.For > 0 {
				one.For = promsli.Span(r.For)
			}
			out.Rules = append(out.Rules, one)
		}
		node := &yaml.Node{}
		if err := node.Encode(out); err != nil {
			return err
		}
		node.HeadComment = comment(g.Comments)
		list.Content = append(list.Content, node)
	}
	if len(groups) == 0 {
		list.Style = yaml.FlowStyle
	}
	root := &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: "groups"}, list}}
	head := []string{"Written by slo rules from " + strings.Join(files, ", ") + ". Do not edit."}
	if len(skipped) > 0 {
		head = append(head, "", "Prometheus cannot say:")
		for _, s := range skipped {
			head = append(head, "- "+s.String())
		}
	}
	if _, err := io.WriteString(w, comment(head)+"\n"); err != nil {
		return err
	}
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		return err
	}
	return enc.Close()
}

func comment(lines []string) string {
	var b strings.Builder
	for i, line := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(strings.TrimRight("# "+strings.Join(strings.Fields(line), " "), " "))
	}
	return b.String()
}
