// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

// verdicts are the states of the promises as they were delivered last.
type verdicts struct {
	mu    sync.Mutex
	state map[[2]string]string // by slo_id and tenant
}

func (v *verdicts) set(id, tenant, state string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.state == nil {
		v.state = map[[2]string]string{}
	}
	v.state[[2]string{id, tenant}] = state
}

// count is how many promises are in which state.
func (v *verdicts) count() map[string]int {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := map[string]int{}
	for _, s := range v.state {
		n[s]++
	}
	return n
}

// verdict is told one.
func (r *run) verdict(id, tenant, state string) {
	r.verdicts.set(id, tenant, state)
	if state == "violated" && tenant == r.alarms.tenant && id == r.alarms.of.id() {
		r.alarms.note(violated, time.Time{})
	}
}

// scrapeResults reads what the Collector says of the promises, as a Prometheus beside it would. What goes wrong shows in
// the verdicts that are missing.
func (r *run) scrapeResults(url string) {
	resp, err := http.Get(url) //nolint:gosec // an address of our own
	if err != nil {
		return
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	all, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		return
	}
	for _, m := range all["slo_state"].GetMetric() {
		if valueOf(m) == 1 {
			r.verdict(label(m, "slo_id"), label(m, "tenant"), label(m, "state"))
		}
	}
}

// receiveResults takes them by OTLP.
func (r *run) receiveResults(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	request := pmetricotlp.NewExportRequest()
	if err == nil {
		err = request.UnmarshalProto(body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, rm := range request.Metrics().ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Name() != "slo.state" {
					continue
				}
				for _, p := range m.Gauge().DataPoints().All() {
					if p.IntValue() == 1 || p.DoubleValue() == 1 {
						r.verdict(text(p.Attributes(), "slo_id"), text(p.Attributes(), "tenant"), text(p.Attributes(), "state"))
					}
				}
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	answer, _ := pmetricotlp.NewExportResponse().MarshalProto() // an empty message
	_, _ = w.Write(answer)
}

func text(m pcommon.Map, key string) string {
	v, _ := m.Get(key)
	return v.Str()
}
