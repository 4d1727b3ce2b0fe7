// SPDX-License-Identifier: Apache-2.0

package gpuguardextension

import (
	"time"

	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/watch"
	"github.com/otelcol-llm/otelcol-llm/internal/gpuaction"
	"github.com/otelcol-llm/otelcol-llm/internal/gpuwatch"
)

// view is what the admin endpoint answers. Sizes are bytes, spans seconds.
type view struct {
	DryRun       bool               `json:"dry_run"`
	Paused       bool               `json:"paused"`
	BudgetLeft   int                `json:"budget_left"`
	CoolsUntil   *time.Time         `json:"cools_until,omitempty"`
	Pending      any                `json:"pending,omitempty"`
	Threshold    float64            `json:"threshold"`
	For          float64            `json:"for"`
	Devices      []deviceView       `json:"devices"`
	Leaks        []leakView         `json:"leaks"`
	LastActions  []gpuaction.Action `json:"last_actions"`
	AuditFailing string             `json:"audit_failing,omitempty"`
}

type deviceView struct {
	ID         string          `json:"id"`
	Used       uint64          `json:"used"`
	Total      uint64          `json:"total"`
	AboveFor   float64         `json:"above_for,omitempty"`
	Candidates []candidateView `json:"candidates"`
}

type candidateView struct {
	PID    int    `json:"pid"`
	Start  uint64 `json:"start"`
	Held   uint64 `json:"held"`
	Growth uint64 `json:"growth"`
	LeakID string `json:"leak_id,omitempty"`
}

type leakView struct {
	ID     string    `json:"id"`
	PID    int       `json:"pid"`
	Device string    `json:"device"`
	Cause  string    `json:"cause,omitempty"`
	At     time.Time `json:"at"`
}

func (e *gpuGuard) view() view {
	now := e.guard.View()
	v := view{
		DryRun: e.cfg.DryRun, Paused: now.Paused, BudgetLeft: now.BudgetLeft, Threshold: e.cfg.Threshold, For: e.cfg.For.Seconds(),
		Devices: devices(now.Devices), Leaks: leaks(now.Leaks),
	}
	v.LastActions, v.AuditFailing = e.book.lately()
	if now.Pending != nil {
		v.Pending = now.Pending
	}
	if now.Cool != 0 {
		at := time.Unix(0, now.Cool).UTC()
		v.CoolsUntil = &at
	}
	return v
}

func devices(of []watch.View) []deviceView {
	all := make([]deviceView, 0, len(of))
	for _, d := range of {
		v := deviceView{ID: d.Device, Used: d.Used, Total: d.Total, AboveFor: d.Above.Seconds(), Candidates: make([]candidateView, 0, len(d.Candidates))}
		for _, c := range d.Candidates {
			w := candidateView{PID: c.PID, Start: c.StartTime, Held: c.Held, Growth: c.Growth}
			if c.Leak != nil {
				w.LeakID = c.Leak.ID
			}
			v.Candidates = append(v.Candidates, w)
		}
		all = append(all, v)
	}
	return all
}

func leaks(of []gpuwatch.Leak) []leakView {
	all := make([]leakView, 0, len(of))
	for _, l := range of {
		all = append(all, leakView{ID: l.ID, PID: l.PID, Device: l.Device, Cause: l.Cause, At: time.Unix(0, l.At).UTC()})
	}
	return all
}
