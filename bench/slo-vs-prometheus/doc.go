// SPDX-License-Identifier: Apache-2.0

// Command slo-vs-prometheus measures, in one run, what it costs to keep the same promises with the Collector and with
// Prometheus and the rules that Sloth writes, each scraping the same endpoints, and how long it takes from a fault to
// an alert. `make bench-prometheus` runs it; README.md says how to read what it prints.
package main
