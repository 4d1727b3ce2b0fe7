// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// MooncakeBlock is how many tokens one of Mooncake's hash_ids stands for.
const MooncakeBlock = 512

type mooncakeRow struct {
	Timestamp    *float64 `json:"timestamp"` // milliseconds
	InputLength  *int     `json:"input_length"`
	OutputLength *int     `json:"output_length"`
	HashIDs      []uint64 `json:"hash_ids"`
}

// readMooncake reads JSON lines in the format of Mooncake's FAST'25 release.
func readMooncake(r io.Reader) ([]Row, error) {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 1<<16), 1<<24)
	var rows []Row
	var start time.Duration
	for line := 1; in.Scan(); line++ {
		if len(bytes.TrimSpace(in.Bytes())) == 0 {
			continue
		}
		var m mooncakeRow
		if err := json.Unmarshal(in.Bytes(), &m); err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		if m.Timestamp == nil || m.InputLength == nil || m.OutputLength == nil {
			return nil, fmt.Errorf("line %d: want timestamp, input_length and output_length", line)
		}
		if *m.Timestamp < 0 || *m.InputLength < 0 || *m.OutputLength < 0 {
			return nil, fmt.Errorf("line %d: negative timestamp or length", line)
		}
		at := time.Duration(*m.Timestamp * float64(time.Millisecond))
		if len(rows) == 0 {
			start = at
		}
		row := Row{
			At: at - start, PromptTokens: *m.InputLength, OutputTokens: *m.OutputLength,
			Prefix: m.HashIDs, PrefixTokens: MooncakeBlock,
		}
		if n := len(rows); n > 0 && row.At < rows[n-1].At {
			return nil, fmt.Errorf("line %d: timestamp: %v is before the line above it; sort the trace by time", line, *m.Timestamp)
		}
		rows = append(rows, row)
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	return checkNotEmpty(rows)
}
