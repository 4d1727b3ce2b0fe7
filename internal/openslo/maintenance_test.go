// SPDX-License-Identifier: Apache-2.0

package openslo

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMaintenanceWindowsAreReadAndFoundByTheirSLOs(t *testing.T) {
	c, err := Parse(source(t, "testdata/good/composite.yaml"))
	require.NoError(t, err)
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	require.Len(t, c.Maintenance, 3)
	assert.Equal(t, MaintenanceWindow{
		Name: "weekly-driver-update", Reason: "driver updates", Effect: EffectSilence,
		SLOs: []string{
			"llm:chat:chat-experience:composite", "llm:chat:chat-experience:errors-98", "llm:chat:chat-experience:ttft-p90",
		},
		Start: time.Date(2026, 12, 6, 2, 0, 0, 0, berlin), Duration: 2 * time.Hour, Every: Duration{Count: 1, Unit: 'w'},
		Until: time.Date(2027, 6, 30, 0, 0, 0, 0, berlin), Position: Position{File: "composite.yaml", Line: 73},
	}, c.Maintenance[2])
	assert.Equal(t, EffectExclude, c.Maintenance[1].Effect)
	assert.Len(t, c.Maintenance[1].SLOs, 6, "all of the service")
	assert.Empty(t, c.Maintenance[0].SLOs, "all of the catalog")

	f := func(id string, want ...string) {
		t.Helper()
		var got []string
		for _, m := range c.Maintained(id) {
			got = append(got, m.Name)
		}
		assert.Equal(t, want, got)
	}
	f("llm:chat:chat-experience:composite", "all", "move", "weekly-driver-update")
	f("llm:chat:chat-experience:ttft-p90", "all", "move", "weekly-driver-update")
	f("llm:chat:half:composite", "all", "move")
	f("llm:other:ttft:p95", "all")
}

func TestAMaintenanceWindowHoldsItsMoments(t *testing.T) {
	f := func(spec, at, wantStart, wantEnd string) {
		t.Helper()
		c, err := Parse(Source{Name: "f", Data: []byte(fmt.Sprintf(
			"apiVersion: otelcol-llm.dev/v1alpha1\nkind: MaintenanceWindow\nmetadata: {name: a}\nspec: {%s}\n", spec))})
		require.NoError(t, err)
		moment, err := time.Parse(time.RFC3339, at)
		require.NoError(t, err)
		start, end, in := c.Maintenance[0].At(moment)
		require.Equal(t, wantStart != "", in, at)
		if in {
			assert.Equal(t, wantStart+" "+wantEnd, start.UTC().Format(time.RFC3339)+" "+end.UTC().Format(time.RFC3339))
		}
	}
	once := "startTime: 2026-12-06 02:00:00, timeZone: Europe/Berlin, duration: 2h"
	f(once, "2026-12-06T00:59:59Z", "", "")
	f(once, "2026-12-06T01:00:00Z", "2026-12-06T01:00:00Z", "2026-12-06T03:00:00Z") // start is in it
	f(once, "2026-12-06T03:00:00Z", "", "")                                         // end is not
	f(once, "2026-12-13T01:00:00Z", "", "")
	weekly := once + ", every: 1w, until: 2027-06-27 02:00:00"
	f(weekly, "2026-12-05T12:00:00Z", "", "")
	f(weekly, "2026-12-13T01:30:00Z", "2026-12-13T01:00:00Z", "2026-12-13T03:00:00Z")
	// The clocks have changed: two in the morning is an hour earlier, and where there is no two it is three.
	f(weekly, "2027-03-28T01:30:00Z", "2027-03-28T01:00:00Z", "2027-03-28T03:00:00Z")
	f(weekly, "2027-04-04T00:30:00Z", "2027-04-04T00:00:00Z", "2027-04-04T02:00:00Z")
	f(weekly, "2027-04-04T02:30:00Z", "", "")
	f(weekly, "2027-06-20T00:30:00Z", "2027-06-20T00:00:00Z", "2027-06-20T02:00:00Z")
	f(weekly, "2027-06-27T00:30:00Z", "", "") // none begins at until
	monthly := "startTime: 2026-01-31 22:00:00, timeZone: UTC, duration: 4h, every: 1M"
	f(monthly, "2026-03-01T01:00:00Z", "2026-02-28T22:00:00Z", "2026-03-01T02:00:00Z")
	always := "startTime: 2026-01-01 00:00:00, timeZone: Europe/Berlin, duration: 24h, every: 1d"
	f(always, "2026-03-29T22:30:00Z", "2026-03-29T22:00:00Z", "2026-03-30T22:00:00Z") // after a day of 23 hours
	f(always, "2026-10-25T22:30:00Z", "", "")                                         // the 25th hour of a day
}

func TestTheShortWindowIsATwelfth(t *testing.T) {
	f := func(long, want time.Duration) {
		t.Helper()
		assert.Equal(t, want, ShortWindow(long))
	}
	f(time.Hour, 5*time.Minute)
	f(6*time.Hour, 30*time.Minute)
	f(24*time.Hour, 2*time.Hour)
	f(72*time.Hour, 6*time.Hour)
	f(10*time.Minute, 2*time.Minute)
	f(25*time.Minute, 125*time.Second)
	f(2*time.Minute, 0)
	f(time.Minute, 0)
}
