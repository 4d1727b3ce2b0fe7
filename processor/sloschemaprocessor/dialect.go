// SPDX-License-Identifier: Apache-2.0

package sloschemaprocessor

import (
	"regexp"
	"strings"
)

// dialect is a tool that has SLO series of its own.
type dialect uint8

const (
	sloth dialect = iota
	pyrra
	sloGenerator
	dialects
	noDialect = dialects
)

// dialectNames are what the setting dialects calls them.
var dialectNames = [dialects]string{"sloth", "pyrra", "slo_generator"}

// kept are the labels of each dialect that say, together, which SLO a series is of: they are what becomes of them.
var kept = [dialects][]string{
	sloth:        {"sloth_id", "sloth_service"},
	pyrra:        {"slo"},
	sloGenerator: {"service_name", "feature_name", "slo_name"},
}

// series says what the name of a metric tells of its points.
type series struct {
	dialect dialect
	// maybe says that others have metrics of this name too: only a point with the dialect's label is one of its series.
	maybe bool
	// objective says that the value of a point is the target of its SLO.
	objective bool
}

// known are the names that the dialects always use. Sloth's other series are found by their sloth_id.
var known = map[string]series{
	"slo:objective:ratio":                     {dialect: sloth, objective: true},
	"slo:error_budget:ratio":                  {dialect: sloth},
	"slo:time_period:days":                    {dialect: sloth},
	"slo:current_burn_rate:ratio":             {dialect: sloth},
	"slo:period_burn_rate:ratio":              {dialect: sloth},
	"slo:period_error_budget_remaining:ratio": {dialect: sloth},
	"sloth_slo_info":                          {dialect: sloth},

	"pyrra_objective":       {dialect: pyrra, objective: true},
	"pyrra_window":          {dialect: pyrra},
	"pyrra_availability":    {dialect: pyrra},
	"pyrra_requests:rate5m": {dialect: pyrra},
	"pyrra_errors:rate5m":   {dialect: pyrra},
	"pyrra_requests_total":  {dialect: pyrra}, // of older versions
	"pyrra_errors_total":    {dialect: pyrra},

	"slo_target":                       {dialect: sloGenerator, maybe: true, objective: true},
	"sli_measurement":                  {dialect: sloGenerator, maybe: true},
	"events_count":                     {dialect: sloGenerator, maybe: true},
	"error_budget_burn_rate":           {dialect: sloGenerator, maybe: true},
	"error_budget_burn_rate_threshold": {dialect: sloGenerator, maybe: true},
	"alerting_burn_rate_threshold":     {dialect: sloGenerator, maybe: true},
	"error_budget_target":              {dialect: sloGenerator, maybe: true},
	"error_budget_measurement":         {dialect: sloGenerator, maybe: true},
	"error_budget_minutes":             {dialect: sloGenerator, maybe: true},
	"error_budget_remaining_minutes":   {dialect: sloGenerator, maybe: true},
}

// pyrraRecorded are the recording rules that Pyrra puts beside a metric: http_requests:burnrate5m, http_requests:increase4w.
var pyrraRecorded = regexp.MustCompile(`:(burnrate|increase|count|sum)(\d+(ms|[smhdwy]))+$`)

// seriesOf tells the series by the name of a metric; its dialect is noDialect for any other metric.
func seriesOf(name string) series {
	if s, ok := known[name]; ok {
		return s
	}
	switch {
	case strings.HasPrefix(name, "slo:sli_error:ratio_rate"):
		return series{dialect: sloth}
	case strings.Contains(name, ":") && pyrraRecorded.MatchString(name):
		return series{dialect: pyrra, maybe: true}
	}
	return series{dialect: noDialect}
}
