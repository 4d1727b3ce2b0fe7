// SPDX-License-Identifier: Apache-2.0

// Package verdicts holds what the slo connector says of an hour of production traffic against the requests themselves.
//
// The simulator serves Azure's conversation and code traces; its replicas are scraped as a Prometheus receiver would
// scrape them and send a span of each request, and the connector, made by its factory and with its defaults, judges what
// they say. The requests know the true answer. The goldens in testdata show both side by side, window by window: on scrapes
// a verdict is a proof within the resolution of the buckets, on spans it is the truth.
package verdicts
