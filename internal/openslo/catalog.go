// SPDX-License-Identifier: Apache-2.0

package openslo

import "time"

// AnnotationPrefix begins the keys of the annotations that carry what OpenSLO cannot say.
const AnnotationPrefix = "otelcol-llm.dev/"

// Catalog is the resolved content of a set of files. It is immutable once returned.
type Catalog struct {
	Services []Service
	SLOs     []SLO             // one an objective, sorted by ID
	Policies []ViolationPolicy // sorted by Name
	Files    []string          // names of the sources, in reading order

	// The documents of these kinds, each sorted by Name, used or not. What an SLO uses stands in it, resolved.
	DataSources         []DataSource
	AlertPolicies       []AlertPolicy
	AlertConditions     []AlertCondition
	NotificationTargets []AlertNotificationTarget

	Maintenance []MaintenanceWindow // sorted by Name; Maintained tells those of an SLO
}

// Service is an OpenSLO Service document.
type Service struct {
	Name        string
	DisplayName string
	Description string
	Position    Position
}

// SLO is one objective of an OpenSLO SLO document. A document with three objectives yields three SLOs
// that share Name and differ in ID.
type SLO struct {
	ID          string // domain:service:metric:objective, unique in the catalog
	Name        string // metadata.name of the document
	DisplayName string
	Description string
	Service     string
	Class       Class
	GroupBy     []string // attribute keys; the SLO is judged once for every combination of their values
	Unit        string   // OpenMetrics base unit of the objective: seconds, ratio, bytes …
	Indicator   Indicator
	Objective   Objective
	TimeWindow  TimeWindow
	Budgeting   BudgetingMethod
	// AlertPolicies are those of the document, inline ones and those referred to, in its order.
	AlertPolicies []AlertPolicy
	Composite     *Composite // set when the objective is a part of a composite SLO
	// MinEvents is how many events a window needs before it is judged; one with fewer is without data. At least 1.
	MinEvents int
	Owner     string   // who answers for the promise, for alerts; empty where nobody is named
	Runbook   string   // URL of what to do when it breaks; likewise
	Position  Position // of the objective; of the document for a composite as a whole

	unmeasured string // of a composite: why one of its parts is not measured
}

// Composite says what an objective with an indicator of its own weighs in its SLO. The SLO as a whole is one more SLO of the
// catalog, whose Indicator has Parts.
type Composite struct {
	Weight float64 // as written, 1 when it is not
	Share  float64 // of all weights of the SLO, in (0, 1]
}

// Class is the slo_class label.
type Class string

// The classes of promises.
const (
	ClassLatency      Class = "latency"
	ClassAvailability Class = "availability"
	ClassThroughput   Class = "throughput"
	ClassQuality      Class = "quality"
	ClassCost         Class = "cost"
	ClassSaturation   Class = "saturation"
)

// Indicator is a service level indicator: exactly one of Threshold, Ratio and Parts is set.
type Indicator struct {
	Name      string
	Threshold *Selector
	Ratio     *Ratio
	Parts     []Part // of a composite: its SLI is the sum of their ratios of good events, each by its share
}

// Part is an SLO of which a composite is made.
type Part struct {
	ID    string  // slo_id
	Share float64 // in (0, 1]; those of a composite add up to 1
}

// Ratio is a ratioMetric: Total with one of Good and Bad, or Raw alone.
type Ratio struct {
	Counter bool // the sources only ever grow
	Good    *Selector
	Bad     *Selector
	Total   *Selector
	Raw     *Selector // a metric that is the ratio already
	RawType RawType
}

// RawType says what Raw measures.
type RawType string

// The raw types of a ratioMetric.
const (
	RawSuccess RawType = "success"
	RawFailure RawType = "failure"
)

// Selector says which telemetry an indicator is made of: the metricSource of OpenSLO.
type Selector struct {
	Type      string // metricSource.type; only TypeOpenTelemetry is evaluated
	Signal    Signal
	Metric    string  // name in OTLP or Prometheus spelling, for SignalMetrics
	Condition string  // OTTL condition; empty selects all
	Value     string  // OTTL value expression, for traces and logs
	Unit      string  // unit of the source as written, empty when it is the base unit
	Scale     float64 // multiplies a source value to give the base unit; 1 when Unit is empty

	// What follows is for thresholdMetric only.

	// Range is what a measured value can be, in the base unit; others are refused as implausible. Nil allows all. With Rate
	// it is for what is summed, and not for the sum.
	Range *Range
	// Expected names a metric that counts the requests of which each should have been measured, for SignalMetrics; the
	// Condition is on it, too. Those that were not measured could have been good or bad.
	Expected string
	// Rate makes one event of every interval of this length that has input: its value is the sum of what was selected,
	// a second. 0 takes every value as an event of its own.
	Rate time.Duration
	// Counted is an OTTL condition: with Rate, what is selected and does not fulfil it adds nothing, but is input.
	// Empty counts all.
	Counted string
}

// Range are the values from Min to Max, both included; either may be infinite.
type Range struct {
	Min, Max float64
}

// TypeOpenTelemetry is the metricSource.type that this distribution evaluates. Other types are valid
// documents (another tool queries them) that nobody here measures.
const TypeOpenTelemetry = "opentelemetry"

// Signal is the kind of telemetry a Selector reads.
type Signal string

// The signals.
const (
	SignalMetrics Signal = "metrics"
	SignalTraces  Signal = "traces"
	SignalLogs    Signal = "logs"
)

// Objective is the promise: Target of the events are good. For a threshold indicator an event is good when
// (value Op Value) holds.
type Objective struct {
	Name            string // last part of the SLO's ID, e.g. p95
	DisplayName     string
	Op              Op
	Value           float64 // in SLO.Unit; threshold indicators only
	Target          float64 // in [0, 1)
	TimeSliceTarget float64 // in [0, 1]; Timeslices only
	TimeSliceWindow time.Duration
}

// Op compares a value with the objective's.
type Op string

// The comparisons.
const (
	OpLTE Op = "lte"
	OpGTE Op = "gte"
	OpLT  Op = "lt"
	OpGT  Op = "gt"
)

// BudgetingMethod says how good events become a budget.
type BudgetingMethod string

// The budgeting methods of OpenSLO v1.
const (
	Occurrences     BudgetingMethod = "Occurrences"
	Timeslices      BudgetingMethod = "Timeslices"
	RatioTimeslices BudgetingMethod = "RatioTimeslices"
)

// TimeWindow is the span that the error budget is for.
type TimeWindow struct {
	Duration Duration
	Rolling  bool
	// Start and Location are set for calendar windows only.
	Start    time.Time
	Location *time.Location
}

// ViolationPolicy says when missed objectives become one violation.
type ViolationPolicy struct {
	Name               string
	Window             time.Duration
	ConsecutiveWindows int
	When               Condition
	OnNoData           NoDataAction
	GroupBy            []string // that of its SLOs, which is the same for all of them
	Severity           string   // for alerts: page, ticket …; empty where none is written
	Targets            []AlertNotificationTarget
	Position           Position
}

// NoDataAction says what an empty window does to a policy.
type NoDataAction string

// The actions on an empty window.
const (
	NoDataHold  NoDataAction = "hold"  // neither counts nor resets
	NoDataOpen  NoDataAction = "open"  // counts as a window in which `when` holds
	NoDataClose NoDataAction = "close" // counts as a window in which `when` does not hold
)

// Condition is a tree: exactly one of All, Any and SLO is set.
type Condition struct {
	All []Condition
	Any []Condition
	// SLO is the metadata.name of an SLO; the leaf holds in a window in which one of its objectives is
	// missed. IDs are the slo_ids it stands for.
	SLO string
	IDs []string
}

// DataSource is an OpenSLO DataSource document. Its connectionDetails are not kept: they hold other tools' secrets, and
// nothing here connects with them.
type DataSource struct {
	Name        string
	DisplayName string
	Description string
	Type        string
	Position    Position
}

// AlertPolicy says which burn rate of an SLO's error budget somebody is told about, and whom.
type AlertPolicy struct {
	Name          string
	DisplayName   string
	Description   string
	WhenNoData    bool
	WhenResolved  bool
	WhenBreaching bool
	Condition     AlertCondition
	Targets       []AlertNotificationTarget
	Position      Position
}

// AlertCondition holds when the burn rate over LookbackWindow has compared with Threshold, by Op, for AlertAfter.
type AlertCondition struct {
	Name           string
	DisplayName    string
	Description    string
	Severity       string
	Kind           ConditionKind
	Op             Op // OpGTE or OpGT
	Threshold      float64
	LookbackWindow time.Duration
	AlertAfter     time.Duration
	Position       Position
}

// ConditionKind is what an AlertCondition looks at.
type ConditionKind string

// BurnRate is the one kind of condition that OpenSLO v1 knows: how many times faster than the objective allows the
// error budget is spent.
const BurnRate ConditionKind = "burnrate"

// AlertNotificationTarget is whom an AlertPolicy tells.
type AlertNotificationTarget struct {
	Name        string
	DisplayName string
	Description string
	Target      string // email, slack, pagerduty …, by the user's choice
	Position    Position
}

// MaintenanceWindow is a time in which promises are not alerted on, or not judged at all.
type MaintenanceWindow struct {
	Name   string
	Reason string
	Effect MaintenanceEffect
	// SLOs are the slo_ids that it is for; all SLOs of the catalog where the document names neither SLOs nor services.
	SLOs []string
	// Start is the beginning of the first, and Duration the length of each.
	Start    time.Time
	Duration time.Duration
	// Every is the time from one beginning to the next, by the calendar of Start's location: a weekly window stays at
	// its hour when the clocks change. The zero Duration does not repeat.
	Every    Duration
	Until    time.Time // no window begins at or after it; zero never ends
	Position Position
}

// MaintenanceEffect says what a MaintenanceWindow does.
type MaintenanceEffect string

// The effects.
const (
	EffectSilence MaintenanceEffect = "silence" // nobody is told; the books go on
	EffectExclude MaintenanceEffect = "exclude" // events in it count for nothing, and nobody is told
)

// Position is a place in a file. Line counts from 1.
type Position struct {
	File string
	Line int
}
