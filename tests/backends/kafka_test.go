// SPDX-License-Identifier: Apache-2.0

//go:build backends

package backends

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// kafkaConfig is one broker that is its own controller (KRaft).
const kafkaConfig = `
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@%[2]s
listeners=PLAINTEXT://%[1]s,CONTROLLER://%[2]s
advertised.listeners=PLAINTEXT://%[1]s
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=%[3]s
num.partitions=%[4]d
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
`

// kafkaPartitions is how many partitions a topic has.
const kafkaPartitions = 8

// startKafka runs Apache Kafka until the test ends, and returns the broker's address.
func startKafka(t testing.TB) string {
	t.Helper()
	java, err := exec.LookPath("java")
	require.NoError(t, err, "Kafka needs Java: as root, apt-get install -y --no-install-recommends default-jre-headless")
	classes := filepath.Join(tool(t, "kafka", "KAFKA_VERSION"), "*")
	broker, controller := spawn.FreeEndpoint(t), spawn.FreeEndpoint(t)
	config := spawn.WriteConfig(t, fmt.Sprintf(kafkaConfig, broker, controller, t.TempDir(), kafkaPartitions))
	run(t, java, "-cp", classes, "kafka.tools.StorageTool", "format", "-t", "otelcol-llm-test-cluster", "-c", config)
	keep(t, java, "-Xmx512m", "-cp", classes, "kafka.Kafka", config)
	require.Eventually(t, func() bool {
		conn, err := net.DialTimeout("tcp", broker, time.Second)
		if err != nil {
			return false
		}
		conn.Close()
		return true
	}, arrives, 100*time.Millisecond, "Kafka does not start")
	return broker
}
