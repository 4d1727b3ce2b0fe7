// SPDX-License-Identifier: Apache-2.0

package dcgmnames

import (
	"math"
	"os"
	"regexp"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/contexts/ottldatapoint"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/ottlfuncs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
)

// operations are what is done to a copy of a series.
type operations []struct {
	Action string
	Scale  float64 `yaml:"experimental_scale"`
	Label  string  `yaml:"new_label"`
	Value  string  `yaml:"new_value"`
}

// scale is what they multiply values by.
func (all operations) scale() float64 {
	for _, o := range all {
		if o.Scale != 0 {
			return o.Scale
		}
	}
	return 1
}

// preset is what of builtin:dcgm-exporter maps names.
type preset struct {
	Processors struct {
		Copies struct {
			Transforms []struct {
				Include, Action string
				NewName         string `yaml:"new_name"`
				Operations      operations
			}
		} `yaml:"metricstransform/dcgm_exporter"`
		Filter struct {
			Metrics struct{ Datapoint []string }
		} `yaml:"filter/dcgm_exporter"`
		Rest struct {
			Statements []struct{ Statements []string } `yaml:"metric_statements"`
		} `yaml:"transform/dcgm_exporter"`
	}
}

// Guarantees: builtin:dcgm-exporter and the receiver mean the same by a name of dcgm-exporter: what one makes of
// the other's series is the metric, with the attribute, the unit and the kind, that it was made from.
func TestTheConfigurationForDcgmExporterIsTheWayBack(t *testing.T) {
	p, rows := readPreset(t), mapped()

	units := regexp.MustCompile(`^set\(metric\.unit, "([^"]+)"\) where (?:IsMatch\(metric\.name, "(.+)"\)|metric\.name == "(.+)")$`)
	sums := regexp.MustCompile(`^convert_gauge_to_sum\("cumulative", (true|false)\) where .* IsMatch\(metric\.name, "(.+)"\)$`)
	unitOf, kindOf := func(name string) (found []string) {
		for _, m := range matches(p, units) {
			pattern := unescaped(m[2])
			if m[3] == name || pattern != "" && regexp.MustCompile(pattern).MatchString(name) {
				found = append(found, m[1])
			}
		}
		return found
	}, func(name string) gpu.Kind {
		for _, m := range matches(p, sums) {
			if regexp.MustCompile(unescaped(m[2])).MatchString(name) {
				if m[1] == "true" {
					return gpu.Counter
				}
				return gpu.UpDownCounter
			}
		}
		return gpu.Gauge
	}

	for _, copied := range p.Processors.Copies.Transforms {
		at, known := rows[copied.Include]
		if !assert.True(t, known, "%s is in the configuration, and not in the table", copied.Include) {
			continue
		}
		delete(rows, copied.Include)
		row, scale, labels := gpu.Rows[at], copied.Operations.scale(), map[string]string{}
		for _, o := range copied.Operations {
			if o.Action == "add_label" {
				labels[o.Label] = o.Value
			}
		}
		want := map[string]string{}
		if row.Value != "" {
			want[row.Metric.Attribute] = row.Value
		}
		if row.Metric.Type != "" {
			want["hw.type"] = row.Metric.Type
		}
		assert.Equal(t, "insert", copied.Action, copied.Include)
		assert.Equal(t, row.Metric.Name, copied.NewName, copied.Include)
		assert.Equal(t, want, labels, copied.Include)
		kind, units := row.Metric.Kind, []string{row.Metric.Unit}
		if kind == gpu.StateSet { // a gauge without a unit
			kind, units = gpu.Gauge, nil
		}
		assert.Equal(t, units, unitOf(copied.NewName), copied.Include)
		assert.Equal(t, kind, kindOf(copied.NewName), copied.Include)
		if row.DCGM.ID != 0 && at != gpu.MemoryUtilization { // what DCGM's number is times to be the metric's
			assert.InEpsilon(t, row.DCGM.Scale, scale, 1e-9, copied.Include)
		}
	}
	assert.Empty(t, rows, "of these the configuration makes nothing")
}

// Guarantees: of the copies that builtin:dcgm-exporter makes, those go that the receiver would not believe: DCGM's blanks, whatever
// their unit is made of, and what is above the limits of the table. What can be stays, and so does the end
// of a series.
func TestTheConfigurationForDcgmExporterBelievesWhatTheReceiverBelieves(t *testing.T) {
	p, rows := readPreset(t), mapped()
	parser, err := ottldatapoint.NewParser(ottlfuncs.StandardConverters[*ottldatapoint.TransformContext](), componenttest.NewNopTelemetrySettings())
	require.NoError(t, err)
	conditions, err := parser.ParseConditions(p.Processors.Filter.Metrics.Datapoint)
	require.NoError(t, err)
	drops := func(name string, point pmetric.NumberDataPoint) bool {
		metric := pmetric.NewMetric()
		metric.SetName(name)
		tc := ottldatapoint.NewTransformContextPtr(pmetric.NewResourceMetrics(), pmetric.NewScopeMetrics(), metric, point)
		defer tc.Close()
		for _, c := range conditions {
			matched, err := c.Eval(t.Context(), tc)
			require.NoError(t, err)
			if matched {
				return true
			}
		}
		return false
	}
	dropped := func(name string, value float64) bool {
		point := pmetric.NewNumberDataPoint()
		point.SetDoubleValue(value)
		return drops(name, point)
	}
	ended := pmetric.NewNumberDataPoint()
	ended.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	for _, copied := range p.Processors.Copies.Transforms {
		row, scale := gpu.Rows[rows[copied.Include]], copied.Operations.scale()
		blanks := []float64{140737488355328, 140737488355338, math.MaxInt64, -1, math.NaN()}
		switch row.Metric.Unit {
		case "By/s", "J": // fields of 64 bits, of which these are usual values
		default:
			blanks = append(blanks, 0x7ffffff0, math.MaxInt32)
		}
		for _, blank := range blanks {
			assert.True(t, dropped(copied.NewName, blank*scale), "%s: %g", copied.Include, blank)
		}
		for _, believed := range []float64{0, 1 / scale, row.Max / scale} {
			assert.False(t, dropped(copied.NewName, believed*scale), "%s: %g", copied.Include, believed)
		}
		assert.False(t, drops(copied.NewName, ended), copied.Include)
		if row.Max != 0 {
			assert.True(t, dropped(copied.NewName, row.Max*1.001), copied.Include)
		}
	}
}

func readPreset(t *testing.T) (p preset) {
	t.Helper()
	content, err := os.ReadFile("../../../../confmap/provider/builtinprovider/configs/dcgm-exporter.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(content, &p))
	return p
}

// mapped are the points that the configuration makes of dcgm-exporter's series.
func mapped() map[string]gpu.Point {
	rows := map[string]gpu.Point{}
	for i := range Table {
		if s := &Table[i]; len(s.Points) == 1 {
			rows[s.Name] = s.Points[0]
		}
	}
	// Derived from the memory here, and told by DCGM there.
	rows["DCGM_FI_DEV_FB_USED_PERCENT"] = gpu.MemoryUtilization
	// Not in Table: dcgm-exporter has them when asked for.
	rows["DCGM_FI_DEV_SHUTDOWN_TEMP"], rows["DCGM_FI_DEV_VIDEO_CLOCK"], rows["DCGM_FI_DEV_ROW_REMAP_PENDING"] = gpu.ShutdownTemperature, gpu.VideoClock, gpu.RemapPending
	return rows
}

func matches(p preset, pattern *regexp.Regexp) (all [][]string) {
	for _, group := range p.Processors.Rest.Statements {
		for _, s := range group.Statements {
			if m := pattern.FindStringSubmatch(s); m != nil {
				all = append(all, m)
			}
		}
	}
	return all
}

// unescaped reads a text of OTTL, in which a backslash is written twice.
func unescaped(s string) string { return regexp.MustCompile(`\\\\`).ReplaceAllString(s, `\`) }
