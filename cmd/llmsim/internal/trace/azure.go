// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

var azureHeader = []string{"TIMESTAMP", "ContextTokens", "GeneratedTokens"}

// readAzure reads the format of AzurePublicDataset's AzureLLMInferenceTrace_*.csv.
func readAzure(r io.Reader) ([]Row, error) {
	in := csv.NewReader(r)
	in.FieldsPerRecord = len(azureHeader)
	in.ReuseRecord = true
	header, err := in.Read()
	if err != nil {
		return nil, fmt.Errorf("line 1: %w", err)
	}
	for i, want := range azureHeader {
		if header[i] != want {
			return nil, fmt.Errorf("line 1: column %d is %q, want %q", i+1, header[i], want)
		}
	}
	var rows []Row
	var start time.Time
	for {
		rec, err := in.Read()
		if errors.Is(err, io.EOF) {
			return checkNotEmpty(rows)
		}
		if err != nil {
			return nil, err
		}
		line, _ := in.FieldPos(0)
		at, err := time.Parse("2006-01-02 15:04:05.999999999", rec[0])
		if err != nil {
			return nil, fmt.Errorf("line %d: TIMESTAMP: %q is no time like 2023-11-16 18:15:46.6805900", line, rec[0])
		}
		if len(rows) == 0 {
			start = at
		}
		row := Row{At: at.Sub(start)}
		for i, field := range []*int{&row.PromptTokens, &row.OutputTokens} {
			if *field, err = strconv.Atoi(rec[i+1]); err != nil || *field < 0 {
				return nil, fmt.Errorf("line %d: %s: %q is no count of tokens", line, azureHeader[i+1], rec[i+1])
			}
		}
		if n := len(rows); n > 0 && row.At < rows[n-1].At {
			return nil, fmt.Errorf("line %d: TIMESTAMP: %s is before the line above it; sort the trace by time", line, rec[0])
		}
		rows = append(rows, row)
	}
}

func checkNotEmpty(rows []Row) ([]Row, error) {
	if len(rows) == 0 {
		return nil, errors.New("no rows")
	}
	return rows, nil
}
