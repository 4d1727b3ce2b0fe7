// SPDX-License-Identifier: Apache-2.0

package openslo

import (
	"fmt"
	"slices"
	"strings"
)

// reservedKeys are the attributes that results carry already, as Prometheus spells them.
var reservedKeys = []string{
	"slo_id", "slo_ids", "slo_policy", "service", "slo_class", "target", "unit", "outcome", "bound", "window", "state", "baseline",
	"otel_metric_overflow", "le", "quantile",
}

// CheckGroupBy says what is wrong with a key to group by, given the keys before it; empty when nothing is.
func CheckGroupBy(before []string, key string) string {
	label := nameSeparators.Replace(key)
	same := slices.IndexFunc(before, func(k string) bool { return nameSeparators.Replace(k) == label })
	switch {
	case strings.ContainsAny(key, " \t\n\"'"):
		return fmt.Sprintf("%s is no attribute key: write keys with commas between, e.g. service.namespace,cloud.region", shown(key))
	case slices.Contains(reservedKeys, label):
		return fmt.Sprintf("%s is an attribute of every result already: group by another key", shown(key))
	case same >= 0 && before[same] == key:
		return fmt.Sprintf("%s stands twice: keep one", shown(key))
	case same >= 0:
		return fmt.Sprintf("%s and %s become one label in Prometheus: keep one", shown(before[same]), shown(key))
	}
	return ""
}

// readGroupBy is the group-by annotation: attribute keys with commas between.
func readGroupBy(m metadata) []string {
	s, v, ok := m.annotation(annotationGroupBy)
	if !ok {
		return nil
	}
	var keys []string
	for key := range strings.SplitSeq(s, ",") {
		key = strings.TrimSpace(key)
		if key == "" {
			v.problemf("%s has an empty key: write attribute keys with one comma between", shown(s))
			continue
		}
		if problem := CheckGroupBy(keys, key); problem != "" {
			v.problemf("%s", problem)
			continue
		}
		keys = append(keys, key)
	}
	return keys
}
