// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/otelcol-llm/otelcol-llm/internal/tenant"
)

// parseTable reads a file of names and tenant ids, as `name: id`. Every problem is told with its line.
func parseTable(file string, data []byte) (map[string]string, error) {
	var doc yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: is empty: write {} when no name is to be mapped", file)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: has more than one document, want one map of names to tenant ids", file)
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s:%d: is no map of names to tenant ids, such as `shop-prod: shop`", file, root.Line)
	}
	table := make(map[string]string, len(root.Content)/2)
	var errs []error
	for i := 0; i < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode || key.Value == "":
			errs = append(errs, fmt.Errorf("%s:%d: is no name", file, key.Line))
		case value.Kind != yaml.ScalarNode || !tenant.Valid(value.Value):
			errs = append(errs, fmt.Errorf("%s:%d: %s: %q is no tenant id: at most 150 of a-z A-Z 0-9 !-_.*'(), and not . or .. alone", file, value.Line, key.Value, value.Value))
		default:
			if _, twice := table[key.Value]; twice {
				errs = append(errs, fmt.Errorf("%s:%d: %s stands twice", file, key.Line, key.Value))
			}
			table[key.Value] = value.Value
		}
	}
	return table, errors.Join(errs...)
}

// tableFile is a table that is read again when its file has changed.
type tableFile struct {
	path string
	seen stamp // of the file as it was last read
	last stamp // of the file at the last look
}

// stamp changes when a file is written.
type stamp struct {
	size    int64
	changed time.Time
}

func stampOf(path string) stamp {
	info, err := os.Stat(path) // follows the links of a ConfigMap
	if err != nil {
		return stamp{size: -1}
	}
	return stamp{info.Size(), info.ModTime()}
}

func (f *tableFile) load() (map[string]string, error) {
	f.seen = stampOf(f.path)
	f.last = f.seen
	data, err := os.ReadFile(f.path)
	if err != nil {
		return nil, err
	}
	return parseTable(f.path, data)
}

// changed reports whether the file has changed since it was read, and not since the last look: somebody may still be writing.
func (f *tableFile) changed() bool {
	now := stampOf(f.path)
	settled := now == f.last
	f.last = now
	return settled && now != f.seen
}
