// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
)

// What is heard of a fault.
const (
	pageAlert = "page alert at Alertmanager"
	opened    = "slo.violation.opened at the log backend"
	burning   = "slo.burn_rate.opened at the log backend"
	violated  = "slo.state violated at the metrics backend"
)

// alarm is the first time that something was heard of the fault.
type alarm struct {
	at        time.Time
	windowEnd time.Time // of the window that was judged; zero where there is none
}

// alarms hears what peers send about one tenant's promise, where it arrives: that is when somebody can know of it.
type alarms struct {
	tenant string
	of     promise

	mu    sync.Mutex
	first map[string]alarm
}

func newAlarms(tenant string, of promise) *alarms {
	return &alarms{tenant: tenant, of: of, first: map[string]alarm{}}
}

func (a *alarms) note(what string, windowEnd time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.first[what]; !known {
		a.first[what] = alarm{time.Now(), windowEnd}
	}
}

func (a *alarms) heard(what string) (alarm, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	got, ok := a.first[what]
	return got, ok
}

// alertmanager takes what Prometheus posts to /api/v2/alerts.
func (a *alarms) alertmanager(w http.ResponseWriter, r *http.Request) {
	var posted []struct {
		Labels map[string]string `json:"labels"`
	}
	if err := json.NewDecoder(r.Body).Decode(&posted); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, p := range posted {
		l := p.Labels
		if l["sloth_service"] == a.tenant && l["sloth_slo"] == a.of.name && l["severity"] == "page" {
			a.note(pageAlert, time.Time{})
		}
	}
}

// logs takes what the Collector posts to /v1/logs.
func (a *alarms) logs(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	request := plogotlp.NewExportRequest()
	if err == nil {
		err = request.UnmarshalProto(body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, rl := range request.Logs().ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, rec := range sl.LogRecords().All() {
				a.record(rec)
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	answer, _ := plogotlp.NewExportResponse().MarshalProto() // an empty message
	_, _ = w.Write(answer)
}

func (a *alarms) record(rec plog.LogRecord) {
	if text(rec.Attributes(), "tenant") != a.tenant || text(rec.Attributes(), "slo_id") != a.of.id() {
		return
	}
	switch rec.EventName() {
	case "slo.violation.opened":
		a.note(opened, rec.Timestamp().AsTime())
	case "slo.burn_rate.opened":
		a.note(burning, time.Time{})
	}
}
