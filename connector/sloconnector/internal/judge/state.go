// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"hash/fnv"
)

// Shards is into how many parts the state of the series is cut, so that a checkpoint writes only what has changed.
const Shards = 64

// shardOf is the shard of a series. It must not change from one release to the next.
func shardOf(id, key string) uint8 {
	h := fnv.New32a()
	h.Write([]byte(id))
	h.Write([]byte{0})
	h.Write([]byte(key))
	return uint8(h.Sum32() % Shards)
}

func (l *ledger) touchAll() {
	for i := range l.touched {
		l.touched[i] = true
	}
}
