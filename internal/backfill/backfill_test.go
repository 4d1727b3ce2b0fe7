// SPDX-License-Identifier: Apache-2.0

package backfill

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// answers are what a Prometheus says: the result of each of the three queries, or the whole body.
type answers struct {
	total, good, seen string
	body              string
	code              int
	warning           string
}

const nobody = `[]`

// stream is a series of an answer: labels, and values at hours of 1 March 2026.
func stream(labels string, values ...any) string {
	var samples []string
	for i, v := range values {
		if v != nil {
			samples = append(samples, fmt.Sprintf(`[%d,"%v"]`, date("2026-03-01 01:00").Add(time.Duration(i)*time.Hour).Unix(), v))
		}
	}
	return `{"metric":{` + labels + `},"values":[` + strings.Join(samples, ",") + `]}`
}

func list(streams ...string) string { return "[" + strings.Join(streams, ",") + "]" }

// prometheus serves answers, and keeps the requests.
type prometheus struct {
	API
	asked []map[string]string
}

type header struct{ next http.RoundTripper }

func (h header) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Scope-OrgID", "team-a")
	return h.next.RoundTrip(r)
}

func serve(t testing.TB, a answers) *prometheus {
	t.Helper()
	p := &prometheus{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.FormValue("query")
		p.asked = append(p.asked, map[string]string{
			"path": r.URL.Path, "query": query, "start": r.FormValue("start"), "end": r.FormValue("end"), "step": r.FormValue("step"),
			"tenant": r.Header.Get("X-Scope-OrgID"),
		})
		result := a.good
		switch {
		case strings.Contains(query, "present_over_time"):
			result = a.seen
		case len(p.asked) == 1:
			result = a.total
		}
		w.Header().Set("Content-Type", "application/json")
		if a.code != 0 {
			w.WriteHeader(a.code)
		}
		body := a.body
		if body == "" {
			body = `{"status":"success","data":{"resultType":"matrix","result":` + result + `}`
			if a.warning != "" {
				body += fmt.Sprintf(`,"warnings":[%q]`, a.warning)
			}
			body += "}"
		}
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	api, err := NewAPI(server.URL+"/prometheus", &http.Client{Transport: header{http.DefaultTransport}})
	require.NoError(t, err)
	p.API = api
	return p
}

func ttft() *openslo.SLO {
	return &openslo.SLO{
		ID: "llm:chat:ttft:p95", Unit: "seconds", Budgeting: openslo.Occurrences, MinEvents: 1,
		Indicator: openslo.Indicator{Threshold: &openslo.Selector{
			Type: openslo.TypeOpenTelemetry, Signal: openslo.SignalMetrics, Metric: "ttft_seconds", Scale: 1,
		}},
		Objective: openslo.Objective{Op: openslo.OpLTE, Value: 0.8, Target: 0.95},
	}
}

// hours asks for some hours of 1 March 2026.
func hours(n int, groupBy ...string) Request {
	start := date("2026-03-01 00:00")
	return Request{SLO: ttft(), GroupBy: groupBy, Span: Span{Start: start, End: start.Add(time.Duration(n) * time.Hour), Step: time.Hour}}
}

func slot(hour int, good, total float64, observed time.Duration) Slot {
	return Slot{Start: date("2026-03-01 00:00").Add(time.Duration(hour) * time.Hour), Length: time.Hour, Good: good, Total: total, Observed: observed}
}

// Scenario: two groups, one of which has no region; one hour without samples, and one with few. Guarantees: a sample at
// the end of a step is for that step; events are whole; what nobody watched has no slot, and what was watched for a part of
// an hour says so.
func TestAStepIsWhatHappenedBeforeItsSample(t *testing.T) {
	p := serve(t, answers{
		total: list(stream(`"model_name":"a"`, 99.7, nil, 20.2, 0), stream(`"model_name":"b","cloud_region":"eu"`, 10)),
		good:  list(stream(`"model_name":"a"`, 90.4, nil, 19.9, 0), stream(`"model_name":"b","cloud_region":"eu"`, 5)),
		seen:  list(stream(`"model_name":"a"`, 3600, nil, 900, 3900), stream(`"model_name":"b","cloud_region":"eu"`, 3600)),
	})
	got, err := Query(t.Context(), p, hours(4, "model_name", "cloud.region"))
	require.NoError(t, err)
	assert.Equal(t, Answer{Series: []Series{
		{Values: []string{"a", ""}, Slots: []Slot{slot(0, 90, 100, time.Hour), slot(2, 20, 20, 15*time.Minute), slot(3, 0, 0, time.Hour)}},
		{Values: []string{"b", "eu"}, Slots: []Slot{slot(0, 5, 10, time.Hour)}},
	}}, got)

	require.Len(t, p.asked, 3)
	assert.Equal(t, map[string]string{
		"path": "/prometheus/api/v1/query_range", "tenant": "team-a",
		"query": "sum by (cloud_region, model_name) (increase(ttft_seconds_count[1h]))",
		"start": "1772326800", "end": "1772337600", "step": "3600", // 01:00 and 04:00
	}, p.asked[0])
	assert.Equal(t, `sum by (cloud_region, model_name) (increase(ttft_seconds_bucket{le="0.8"}[1h]))`, p.asked[1]["query"])
}

// Guarantees: nothing that is read makes a budget fuller or emptier than it can be; what makes no sense is passed over and
// counted, and loses nothing else.
func TestWhatMakesNoSenseIsPassedOverAndCounted(t *testing.T) {
	p := serve(t, answers{
		total:   list(stream("", 10, 10, "NaN", -3, "+Inf", 10, 10), `{"metric":{},"values":[[1772323201,"7"],[1772323200,"7"]]}`, stream("", 99)),
		good:    list(stream("", 10.9, -0.4, 1, 1, 1, "NaN", nil, 4), stream(`"stray":"x"`, nil)),
		seen:    list(stream("", 3600, 3600, 3600, 3600, 3600, 3600, "NaN")),
		warning: "a store did not answer",
	})
	got, err := Query(t.Context(), p, hours(7))
	require.NoError(t, err)
	assert.Equal(t, Answer{
		Series:   []Series{{Values: []string{}, Slots: []Slot{slot(0, 10, 10, time.Hour), slot(1, 0, 10, time.Hour)}}},
		Withheld: map[Reason]int{Implausible: 5, Unmatched: 2, OffStep: 3},
		Warnings: []string{"a store did not answer"},
	}, got)
}

func TestGroupsBeyondTheLimitAreCountedAndNotTaken(t *testing.T) {
	three := list(stream(`"m":"a"`, 10), stream(`"m":"b"`, 10), stream(`"m":"c"`, 10))
	r := hours(1, "m")
	r.MaxSeries = 2
	got, err := Query(t.Context(), serve(t, answers{total: three, good: three, seen: three}), r)
	require.NoError(t, err)
	assert.Len(t, got.Series, 2)
	assert.Equal(t, map[Reason]int{SeriesLimit: 1}, got.Withheld)
}

// Scenario: the histogram has no bucket that ends at the objective. Guarantees: its events are not taken for bad ones.
func TestAMissingBucketIsUnknownAndNotBad(t *testing.T) {
	got, err := Query(t.Context(), serve(t, answers{total: list(stream("", 10, 10)), good: nobody, seen: list(stream("", 3600, 3600))}), hours(2))
	require.NoError(t, err)
	assert.Equal(t, Answer{
		Series: []Series{}, Withheld: map[Reason]int{Unmatched: 2},
		Warnings: []string{"Prometheus has ttft_seconds, but no bucket of it that ends at 0.8: what was good in the past is not known"},
	}, got)
}

// Guarantees: with time slices the budget is made of slices and not of events.
func TestSlicesAreCountedWhereTheBudgetIsOfSlices(t *testing.T) {
	f := func(method openslo.BudgetingMethod, good float64, want Slot, query string) {
		t.Helper()
		r := hours(1)
		r.SLO.Budgeting, r.SLO.Objective.TimeSliceWindow, r.SLO.Objective.TimeSliceTarget, r.SLO.MinEvents = method, 10*time.Minute, 0.9, 5
		p := serve(t, answers{total: list(stream("", 7)), good: list(stream("", good)), seen: list(stream("", 3600))})
		got, err := Query(t.Context(), p, r)
		require.NoError(t, err)
		assert.Equal(t, []Series{{Values: []string{}, Slots: []Slot{want}}}, got.Series)
		assert.Equal(t, query, strings.Join(strings.Fields(p.asked[1]["query"]), " "))
	}
	const enough = `(sum(increase(ttft_seconds_bucket{le="0.8"}[10m])) / (sum(increase(ttft_seconds_count[10m])) > 0)) and (sum(increase(ttft_seconds_count[10m])) >= 4.5)`
	f(openslo.Timeslices, 4, slot(0, 4, 6, time.Hour), "sum_over_time((("+enough+") >= bool 0.899999999)[1h:10m])")
	f(openslo.RatioTimeslices, 5.5, slot(0, 5.5, 6, time.Hour), "sum_over_time(("+enough+")[1h:10m])")
}

func TestAReadyRatioHasReadingsAndNoWholeEvents(t *testing.T) {
	r := hours(1)
	r.SLO.Indicator = openslo.Indicator{Ratio: &openslo.Ratio{RawType: openslo.RawSuccess, Raw: &openslo.Selector{
		Type: openslo.TypeOpenTelemetry, Signal: openslo.SignalMetrics, Metric: "hit_ratio", Scale: 1,
	}}}
	got, err := Query(t.Context(), serve(t, answers{total: list(stream("", 60)), good: list(stream("", 41.5)), seen: list(stream("", 3600))}), r)
	require.NoError(t, err)
	assert.Equal(t, []Slot{slot(0, 41.5, 60, time.Hour)}, got.Series[0].Slots)
}

func TestWhatCannotBeAskedIsNotAskedAgain(t *testing.T) {
	r := hours(1)
	r.SLO.Indicator.Threshold.Signal = openslo.SignalTraces
	p := serve(t, answers{})
	_, err := Query(t.Context(), p, r)
	require.ErrorIs(t, err, ErrUnsupported)
	require.EqualError(t, err, "llm:chat:ttft:p95: no history: it is made of traces, which Prometheus does not have")
	assert.Empty(t, p.asked)
}

// Guarantees: a Prometheus that is down, overloaded or something else is an error that may be gone another day.
func TestAnErrorSaysWhatPrometheusWasAskedFor(t *testing.T) {
	f := func(a answers, want string) {
		t.Helper()
		_, err := Query(t.Context(), serve(t, a), hours(1))
		require.ErrorContains(t, err, want)
		require.NotErrorIs(t, err, ErrUnsupported)
	}
	f(answers{code: http.StatusServiceUnavailable, body: "{}"}, "llm:chat:ttft:p95: Prometheus was asked for the total: ")
	f(answers{code: 422, body: `{"status":"error","errorType":"execution","error":"query processing would load too many samples"}`}, "too many samples")
	f(answers{body: `{"status":"success","data":{"resultType":"vector","result":[]}}`}, "answered with a vector: a matrix would be right")
	f(answers{body: "<html>"}, "asked for the total: ")
	f(answers{total: nobody, good: nobody, seen: strings.Repeat(" ", maxBody+1) + nobody}, "what was observed: the answer is longer than 67108864 bytes")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Query(ctx, serve(t, answers{total: nobody}), hours(1))
	require.ErrorIs(t, err, context.Canceled)
	_, err = NewAPI("http://[", http.DefaultClient)
	require.ErrorContains(t, err, "address of a Prometheus API")
}

func TestARequestIsMadeOfWholeSteps(t *testing.T) {
	f := func(change func(*Request), want string) {
		t.Helper()
		r := hours(1)
		change(&r)
		_, err := Query(t.Context(), serve(t, answers{}), r)
		require.ErrorContains(t, err, want)
	}
	f(func(r *Request) { r.Step = time.Minute }, "a step of 1m0s: write 5m0s or more")
	f(func(r *Request) { r.Start = r.Start.Add(time.Minute) }, "write times that are multiples of the step of 1h0m0s")
	f(func(r *Request) { r.End = r.Start }, "the earlier one first")
	f(func(r *Request) { r.End = r.Start.Add(1001 * time.Hour) }, "1001 steps of 1h0m0s: ask for 1000 at most")
	f(func(r *Request) { r.SLO.Objective.TimeSliceWindow = 7 * time.Minute }, "write a multiple of timeSliceWindow 7m0s")
}
