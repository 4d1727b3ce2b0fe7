// SPDX-License-Identifier: Apache-2.0

// Package verdicts holds what the slo connector says of an hour of production traffic against the requests themselves.
//
// The simulator serves Azure's conversation and code traces; its replicas are scraped as a Prometheus receiver would
// scrape them, and the connector, made by its factory and with its defaults, judges what the scrapes say. The requests
// know the true answer. The goldens in testdata show both side by side, window by window.
//
// Scrapes are one input of the same requests. Their spans (internal/spans) are another, and an exact one: what is judged
// on those has to be the truth by the requests' own time, which the goldens show too.
package verdicts
