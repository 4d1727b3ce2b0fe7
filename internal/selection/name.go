// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"strings"
)

// SameMetric reports whether a metric of the data is the one that a spec names, in OTLP or Prometheus spelling:
// gen_ai.server.time_to_first_token and gen_ai_server_time_to_first_token_seconds are one metric, as are
// vllm:num_preemptions and vllm:num_preemptions_total. Prometheus writes dots as underscores and appends the unit
// and, for counters, _total (https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/).
func SameMetric(spec, data string) bool {
	if spec == data {
		return true
	}
	a, b := escape(spec), escape(data)
	if len(a) > len(b) {
		a, b = b, a
	}
	suffix, isPrefix := strings.CutPrefix(b, a)
	if !isPrefix {
		return false
	}
	suffix = strings.TrimSuffix(suffix, "_total")
	return suffix == "" || unitSuffixes[suffix]
}

// escape spells a name as Prometheus does.
func escape(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == ':', r == '_':
			return r
		default:
			return '_'
		}
	}, name)
}

// unitSuffixes are what Prometheus makes of the OTLP units that an LLM service measures in. Of {token} and {request} it
// makes nothing.
var unitSuffixes = map[string]bool{
	"_seconds": true, "_milliseconds": true, "_microseconds": true, "_nanoseconds": true, "_minutes": true,
	"_hours": true, "_days": true, "_bytes": true, "_kibibytes": true, "_mebibytes": true, "_gibibytes": true,
	"_kilobytes": true, "_megabytes": true, "_gigabytes": true, "_ratio": true, "_percent": true, "_joules": true,
	"_watts": true, "_celsius": true, "_bytes_per_second": true, "_per_second": true,
}

// stems are a name and what is left of it without the suffixes that SameMetric passes over: two names can only be the
// same metric when they have a stem in common.
func stems(name string) []string {
	all := []string{name}
	bare := strings.TrimSuffix(name, "_total")
	if bare != name {
		all = append(all, bare)
	}
	// A unit is at most three words: _tokens_per_second.
	for at, words := len(bare), 0; words < 3; words++ {
		at = strings.LastIndexByte(bare[:at], '_')
		if at < 0 {
			break
		}
		if unitSuffixes[bare[at:]] {
			all = append(all, bare[:at])
		}
	}
	return all
}
