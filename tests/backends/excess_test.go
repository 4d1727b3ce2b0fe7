// SPDX-License-Identifier: Apache-2.0

//go:build backends

package backends

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Scenario: an agent puts the log records of twenty tenants, who share partitions of Apache Kafka, into it. One of them sends a hundred
// times its limit before the others send what they may.
// Guarantees: the gateway behind Kafka refuses nothing, so that the others' records do not wait for the one's limit, and all of them
// are there; of the one's are there as many as it may send, and the others are counted.
func TestBehindKafkaNobodyWaitsForATenantOverItsLimit(t *testing.T) {
	const perSecond, each, sent, inOne = 10, 5, 2000, 100
	kafka := startKafka(t)
	to := destinations{store{ask: "http://127.0.0.1:1"}, startLogStore(t), jaeger{otlp: "127.0.0.1:1"}}
	g := startGateway(t, to, "gateway-0", "", []string{"KAFKA_BROKERS=" + kafka}, "builtin:gateway-kafka",
		fmt.Sprintf("yaml:connectors::tenant_routing/in: {limits: {items_per_second: %d, burst: 10s}}", perSecond))
	began := time.Now()
	c, now := claiming{t, startAgent(t, kafka), ""}, time.Now()
	for i := range sent / inOne { // a request for each message
		c.records([]string{"noisy"}, numbers{inOne * i, inOne * (i + 1)}, now)
	}
	names := make([]string, 20)
	for k := range names {
		names[k] = fmt.Sprintf("quiet-%02d", k)
	}
	for i := range each {
		c.records(names, numbers{i, i + 1}, now)
	}
	for _, tenant := range names {
		require.Eventually(t, func() bool { return len(to.recordsOf(t, tenant)) == each }, arrives, 100*time.Millisecond, tenant)
		assert.Zero(t, to.recordsOf(t, tenant).complete(t, "log records", tenant, each))
	}
	dropped := func() int { return int(g.counted(t, "otelcol_tenant_routing_items_dropped_total", "noisy")) }
	var got int
	require.Eventually(t, func() bool {
		got = len(to.recordsOf(t, "noisy"))
		return got+dropped() == sent
	}, arrives, 100*time.Millisecond, "of the one's records, %d are there", got)
	assert.Positive(t, got)
	// A request is taken as a whole, on credit, when anything is left.
	assert.LessOrEqual(t, float64(got), perSecond*(10+time.Since(began).Seconds())+inOne)
	assert.Zero(t, g.Stop())
	// What was dropped is logged once a minute, and in the end.
	logged := 0
	for _, m := range regexp.MustCompile(`items of tenants were not taken.*"reason": "items_per_second", "items": (\d+), "signal": "logs", "example": "noisy"`).FindAllStringSubmatch(g.Logs(), -1) {
		items, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		logged += items
	}
	assert.Equal(t, sent-got, logged)
}
