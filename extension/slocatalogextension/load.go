// SPDX-License-Identifier: Apache-2.0

package slocatalogextension

import (
	"os"
	"strconv"

	"github.com/cespare/xxhash/v2"

	"github.com/otelcol-llm/otelcol-llm/extension/slocatalogextension/samples"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/selection"
)

// load reads the catalog that paths lead to. Expressions are compiled too, so that a broken one is told with its line.
func load(paths []string) (*openslo.Catalog, error) {
	files, sources, err := samples.Resolve(paths)
	if err != nil {
		return nil, err
	}
	opts, err := selection.Checked()
	if err != nil {
		return nil, err
	}
	return openslo.LoadWith(opts, files, sources...)
}

// fingerprint changes when a file that paths lead to comes, goes or is written. It costs a look at each file's entry, so
// unchanged files are not read again.
func fingerprint(paths []string) uint64 {
	files, _, err := samples.Resolve(paths)
	if err != nil {
		return 0
	}
	h := xxhash.New()
	for _, file := range openslo.Files(files) {
		_, _ = h.WriteString(file)
		info, err := os.Stat(file) // follows the links of a ConfigMap
		if err != nil {
			_, _ = h.WriteString("\x00" + err.Error())
			continue
		}
		_, _ = h.WriteString("\x00" + strconv.FormatInt(info.Size(), 10) + "\x00" + strconv.FormatInt(info.ModTime().UnixNano(), 10) + "\x00")
	}
	return h.Sum64()
}
