// SPDX-License-Identifier: Apache-2.0

package alertmanager

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
)

// message is Alertmanager's postableAlert.
type message struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations,omitempty"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL,omitempty"`
}

// encode writes what is posted. What fires has an end ahead, so that it resolves when it is not sent again.
func (c *Config) encode(items []item, now time.Time) ([]byte, error) {
	messages := make([]message, len(items))
	for i, it := range items {
		m := message{
			Labels: names(it.Labels, c.ExternalLabels), Annotations: names(it.Annotations, nil),
			StartsAt: instant(it.StartsAt), EndsAt: instant(it.EndsAt), GeneratorURL: it.GeneratorURL,
		}
		if it.EndsAt.IsZero() {
			m.EndsAt = instant(now.Add(4 * c.ResendInterval))
		}
		if m.GeneratorURL == "" {
			m.GeneratorURL = c.ConsoleURL
		}
		messages[i] = m
	}
	return json.Marshal(messages)
}

// instant is a time in the resolution that Prometheus sends.
func instant(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// names escapes names and leaves empty values out; values of defaults stand where there is none. Where two names become
// one, the one that needed no escaping counts, else the first.
func names(values, defaults map[string]string) map[string]string {
	escaped := make(map[string]string, len(values)+len(defaults))
	for _, from := range []map[string]string{values, defaults} {
		var changed []string
		for name, value := range from {
			if value == "" || name == "" {
				continue
			}
			if valid := escape(name); valid != name {
				changed = append(changed, name)
			} else if _, has := escaped[name]; !has {
				escaped[name] = value
			}
		}
		slices.Sort(changed)
		for _, name := range changed {
			if _, has := escaped[escape(name)]; !has {
				escaped[escape(name)] = from[name]
			}
		}
	}
	return escaped
}

// escape spells a name as every release of Alertmanager takes it, and as `slo rules` does for Prometheus, so that one route
// and one silence fit the alerts of both.
func escape(name string) string {
	if name[0] >= '0' && name[0] <= '9' {
		name = "key_" + name
	}
	return strings.Map(func(r rune) rune {
		if r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			return r
		}
		return '_'
	}, name)
}

// text is for a log line: names and values of labels in order.
func text(labels map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		b.WriteString(" " + name + "=" + labels[name])
	}
	return strings.TrimSpace(b.String())
}
