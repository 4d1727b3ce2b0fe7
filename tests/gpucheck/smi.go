// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// smi is nvidia-smi.
type smi struct {
	path   string
	fields []string // that this version knows
}

// sample is what nvidia-smi said at once.
type sample struct {
	begun, ended time.Time
	gpus         map[string]map[string]string // by UUID: fields that have a value
	memory       map[string]map[uint32]string // by UUID and PID: MiB
}

// identity are the fields that are compared as texts.
const (
	fieldUUID     = "uuid"
	fieldDriver   = "driver_version"
	fieldName     = "name"
	fieldSerial   = "serial"
	fieldFirmware = "vbios_version"
	fieldPCI      = "pci.bus_id"
	fieldMIG      = "mig.mode.current"
)

var unknownField = regexp.MustCompile(`Field "([^"]+)" is not a valid field`)

// newSMI finds out which of the fields this version knows.
func newSMI(ctx context.Context, path string, fields []string) (*smi, error) {
	s := &smi{path: path, fields: slices.Clone(fields)}
	for {
		out, err := s.run(ctx, "--query-gpu="+strings.Join(s.fields, ","), "--format=csv,noheader,nounits")
		if err == nil {
			return s, nil
		}
		m := unknownField.FindSubmatch(out)
		if m == nil {
			return nil, err
		}
		without := slices.DeleteFunc(slices.Clone(s.fields), func(f string) bool { return f == string(m[1]) })
		if len(without) == len(s.fields) {
			return nil, err
		}
		s.fields = without
	}
}

func (s *smi) run(ctx context.Context, args ...string) ([]byte, error) {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, s.path, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		out = append(out, stderr.Bytes()...)
		what, _, _ := strings.Cut(args[0], "=")
		return out, fmt.Errorf("%s %s: %w\n%s", s.path, what, err, out)
	}
	return out, nil
}

// sample asks once.
func (s *smi) sample(ctx context.Context) (*sample, error) {
	at := &sample{begun: time.Now(), gpus: map[string]map[string]string{}, memory: map[string]map[uint32]string{}}
	rows, err := s.query(ctx, "--query-gpu=", s.fields)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		at.gpus[row[fieldUUID]] = row
	}
	if len(at.gpus) == 0 {
		return nil, errors.New("nvidia-smi sees no GPU")
	}
	processes, err := s.query(ctx, "--query-compute-apps=", []string{"gpu_uuid", "pid", "used_gpu_memory"})
	if err != nil {
		return nil, err
	}
	for _, row := range processes {
		pid, err := strconv.ParseUint(row["pid"], 10, 32)
		if err != nil {
			continue
		}
		of := at.memory[row["gpu_uuid"]]
		if of == nil {
			of = map[uint32]string{}
			at.memory[row["gpu_uuid"]] = of
		}
		of[uint32(pid)] = row["used_gpu_memory"]
	}
	at.ended = time.Now()
	return at, nil
}

// query returns the fields of each row that have a value.
func (s *smi) query(ctx context.Context, what string, fields []string) (rows []map[string]string, err error) {
	out, err := s.run(ctx, what+strings.Join(fields, ","), "--format=csv,noheader,nounits")
	if err != nil {
		return nil, err
	}
	reader := csv.NewReader(bytes.NewReader(out))
	reader.TrimLeadingSpace = true
	reader.FieldsPerRecord = -1 // warnings stand between the rows, such as of an infoROM that is corrupted
	records, err := reader.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("nvidia-smi %s: %w", what, err)
	}
	for _, record := range records {
		if len(record) != len(fields) {
			continue
		}
		row := map[string]string{}
		for i, value := range record {
			if value = strings.TrimSpace(value); hasValue(value) {
				row[fields[i]] = value
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// hasValue says whether a text is one: what cannot be told stands in brackets, [N/A] or [Not Supported].
func hasValue(text string) bool {
	return text != "" && text != "N/A" && !strings.HasPrefix(text, "[")
}

// number reads a value: 59, 71.15, 0x0000000000000001, Yes and No.
func number(text string) (float64, bool) {
	switch text {
	case "Yes", "Pending":
		return 1, true
	case "No":
		return 0, true
	}
	if hex, ok := strings.CutPrefix(text, "0x"); ok {
		v, err := strconv.ParseUint(hex, 16, 64)
		return float64(v), err == nil
	}
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil
}
