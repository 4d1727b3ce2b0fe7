// SPDX-License-Identifier: Apache-2.0

package openslo

import (
	"regexp"
	"strings"
)

// unitScale is what a unit is in an OpenMetrics base unit: a number in it times scale is a number of base.
type unitScale struct {
	base  string
	scale float64
}

// units are the spellings that a spec may use, UCUM (as OpenTelemetry writes them) and words.
var units = map[string]unitScale{
	"ns": {"seconds", 1e-9}, "nanoseconds": {"seconds", 1e-9},
	"us": {"seconds", 1e-6}, "µs": {"seconds", 1e-6}, "microseconds": {"seconds", 1e-6},
	"ms": {"seconds", 1e-3}, "milliseconds": {"seconds", 1e-3},
	"s": {"seconds", 1}, "seconds": {"seconds", 1},
	"min": {"seconds", 60}, "minutes": {"seconds", 60},
	"h": {"seconds", 3600}, "hours": {"seconds", 3600},
	"d": {"seconds", 86400}, "days": {"seconds", 86400},

	"1": {"ratio", 1}, "ratio": {"ratio", 1},
	"%": {"ratio", 1e-2}, "percent": {"ratio", 1e-2},

	"By": {"bytes", 1}, "B": {"bytes", 1}, "bytes": {"bytes", 1},
	"kBy": {"bytes", 1e3}, "kB": {"bytes", 1e3}, "kilobytes": {"bytes", 1e3},
	"MBy": {"bytes", 1e6}, "MB": {"bytes", 1e6}, "megabytes": {"bytes", 1e6},
	"GBy": {"bytes", 1e9}, "GB": {"bytes", 1e9}, "gigabytes": {"bytes", 1e9},
	"KiBy": {"bytes", 1 << 10}, "KiB": {"bytes", 1 << 10}, "kibibytes": {"bytes", 1 << 10},
	"MiBy": {"bytes", 1 << 20}, "MiB": {"bytes", 1 << 20}, "mebibytes": {"bytes", 1 << 20},
	"GiBy": {"bytes", 1 << 30}, "GiB": {"bytes", 1 << 30}, "gibibytes": {"bytes", 1 << 30},
	"TiBy": {"bytes", 1 << 40}, "TiB": {"bytes", 1 << 40}, "tebibytes": {"bytes", 1 << 40},

	"J": {"joules", 1}, "joules": {"joules", 1}, "kJ": {"joules", 1e3},
	"W": {"watts", 1}, "watts": {"watts", 1}, "kW": {"watts", 1e3},
	"Cel": {"celsius", 1}, "celsius": {"celsius", 1},
	"tokens": {"tokens", 1}, "requests": {"requests", 1},
}

// exampleUnits stand in the complaint about an unknown unit; the table itself is too long for it.
const exampleUnits = "ns, us, ms, s, min, h, percent, By, MiBy, GiBy, tokens/s"

var (
	baseUnit   = regexp.MustCompile(`^[a-z][a-z0-9_]*[a-z0-9]$`)
	annotation = regexp.MustCompile(`^\{([a-z][a-z0-9_]*)\}$`) // UCUM: {token}
)

// lookupUnit tells what a written unit is in a base unit.
func lookupUnit(unit string) (unitScale, bool) {
	if u, ok := units[unit]; ok {
		return u, true
	}
	if m := annotation.FindStringSubmatch(unit); m != nil {
		return unitScale{base: plural(m[1]), scale: 1}, true
	}
	count, per := unit, ""
	if before, after, ok := strings.Cut(unit, "/"); ok {
		count, per = before, after
	} else if i := strings.LastIndex(unit, "_per_"); i > 0 {
		count, per = unit[:i], unit[i+len("_per_"):]
	}
	switch per {
	case "s", "second", "sec":
		c, ok := lookupUnit(count)
		if ok && c.base != "ratio" && !strings.Contains(c.base, "_per_") {
			return unitScale{base: c.base + "_per_second", scale: c.scale}, true
		}
	}
	return unitScale{}, false
}

func plural(word string) string {
	if strings.HasSuffix(word, "s") {
		return word
	}
	return word + "s"
}

// The suffixes that Prometheus puts behind the unit.
var kindSuffix = regexp.MustCompile(`_(total|bucket|sum|count|created)$`)

// suffixes are the units that a metric's name may end in, by Prometheus's convention. Percent is not among
// them: metrics named *_percent and *_perc count to 1 (vLLM, Dynamo) as often as to 100.
var suffixes = []struct{ suffix, unit string }{
	{"_per_second", ""}, // the words before it decide
	{"_nanoseconds", "nanoseconds"}, {"_ns", "ns"},
	{"_microseconds", "microseconds"}, {"_us", "us"},
	{"_milliseconds", "milliseconds"}, {"_ms", "ms"},
	{"_seconds", "seconds"}, {"_minutes", "minutes"}, {"_hours", "hours"}, {"_days", "days"},
	{"_ratio", "ratio"}, {"_utilization", "ratio"},
	{"_kilobytes", "kilobytes"}, {"_megabytes", "megabytes"}, {"_gigabytes", "gigabytes"},
	{"_kibibytes", "kibibytes"}, {"_mebibytes", "mebibytes"}, {"_gibibytes", "gibibytes"}, {"_bytes", "bytes"},
	{"_joules", "joules"}, {"_watts", "watts"}, {"_celsius", "celsius"},
}

// secondsWords tell a duration in a name without a unit. OpenTelemetry's conventions measure those in seconds
// (gen_ai.server.time_to_first_token, http.server.request.duration).
var secondsWords = regexp.MustCompile(`(^|_)(duration|latency|time_to|time_per|time_in)(_|$)`)

// unitOfName reads the unit off a metric's or attribute's name. Dots, colons and dashes count as underscores.
func unitOfName(name string) sourceUnit {
	if unit, ok := unitOfSuffix(name); ok {
		return unit
	}
	if secondsWords.MatchString(nameSeparators.Replace(name)) {
		return sourceUnit{unitScale: unitScale{base: "seconds", scale: 1}, written: "seconds"}
	}
	return sourceUnit{}
}

// unitOfSuffix reads the unit that a name ends in by Prometheus's convention: that is no guess.
func unitOfSuffix(name string) (sourceUnit, bool) {
	name = kindSuffix.ReplaceAllString(nameSeparators.Replace(name), "")
	for _, s := range suffixes {
		if !strings.HasSuffix("_"+name, s.suffix) {
			continue
		}
		unit := s.unit
		if unit == "" {
			words := strings.Split(strings.TrimSuffix(name, s.suffix), "_")
			unit = words[len(words)-1] + s.suffix
		}
		if known, ok := lookupUnit(unit); ok {
			return sourceUnit{unitScale: known, written: unit}, true
		}
		return sourceUnit{unitScale: unitScale{base: unit, scale: 1}, written: unit}, true
	}
	return sourceUnit{}, false
}

var nameSeparators = strings.NewReplacer(".", "_", ":", "_", "-", "_")
