// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"
)

// What the Collector is to cost at most, of what Prometheus with rules costs.
const (
	cpuTarget    = 1.0 / 15
	memoryTarget = 1.0 / 2
)

// tellWithin is how long results may take from what caused them, which is a scrape.
const tellWithin = time.Second

// report writes the tables, and says what target was missed.
func (s settings) report(to io.Writer, results map[string]result) error {
	slos := s.models * len(kinds)
	fmt.Fprintf(to, "%d SLOs × %d tenants; %d endpoints with %d series in all, scraped every %s; rules evaluated every %s, windows of %s; measured for %s after %s of warm-up; %d CPUs, %s.\n\n",
		slos, s.tenants, s.tenants, s.tenants*s.models*seriesPerModel(), s.interval, s.evaluation, s.window, s.measure, s.warmUp, runtime.NumCPU(), runtime.Version())
	var errs []error
	rules, compare := results["b"]
	fmt.Fprintln(to, "| | CPU s | of (b) | peak RSS MB | of (b) | scrapes |")
	fmt.Fprintln(to, "|---|---|---|---|---|---|")
	for _, p := range peers {
		r, there := results[p.letter]
		if !there {
			continue
		}
		cpu, memory := "–", "–"
		if compare {
			cpu, memory = ratio(r.cpu, rules.cpu), ratio(r.peak, rules.peak)
		}
		fmt.Fprintf(to, "| (%s) %s | %.2f | %s | %.0f | %s | %d |\n", p.letter, p.name, r.cpu, cpu, r.peak, memory, r.scrapes)
		if compare && p.held {
			errs = append(errs, missed("CPU", r.cpu/rules.cpu, cpuTarget), missed("memory", r.peak/rules.peak, memoryTarget))
		}
	}
	fmt.Fprintln(to, "\n| what is heard of a fault, where | after the fault | after its window closed |")
	fmt.Fprintln(to, "|---|---|---|")
	for _, p := range peers {
		r, there := results[p.letter]
		for _, name := range p.alarms {
			if !there {
				continue
			}
			a := r.alarms[name]
			closed := "–"
			if !a.windowEnd.IsZero() {
				lag := a.at.Sub(a.windowEnd)
				closed = seconds(lag)
				if lag > s.interval+tellWithin {
					errs = append(errs, fmt.Errorf("(%s) %s: %s after the window closed, target at most one scrape and %s to tell, %s",
						p.letter, name, closed, tellWithin, s.interval+tellWithin))
				}
			}
			fmt.Fprintf(to, "| (%s) %s | %s | %s |\n", p.letter, name, seconds(a.at.Sub(r.broken)), closed)
		}
	}
	return errors.Join(errs...)
}

func ratio(a, b float64) string { return fmt.Sprintf("1/%.1f", b/a) }

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func missed(what string, got, most float64) error {
	if got <= most {
		return nil
	}
	return fmt.Errorf("(c) %s: 1/%.1f of Prometheus with rules, target at most 1/%.0f", what, 1/got, 1/most)
}
