// SPDX-License-Identifier: Apache-2.0

// Command vulngate reads what `govulncheck -format json` prints and fails when a vulnerability has a fix and is not in
// the allow-list.
//
//	govulncheck -mode binary -format json bin/otelcol-llm | go run ./tools/vulngate -allow tools/vuln-allow.txt
//
// Every known vulnerability of a module in the binary counts, whether or not its code is known to be reached: a
// stripped binary does not tell, and users' scanners do not ask. A line of the allow-list is an id and the reason,
// `GO-2026-1234 only on Windows`; one that nothing needs any more fails too, so that the list cannot grow old.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

func main() {
	allowFile := flag.String("allow", "", "file with one `id reason` a line")
	flag.Parse()
	ok, err := run(os.Stdin, *allowFile, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "vulngate:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// message is one value of govulncheck's JSON stream; one field is set.
type message struct {
	OSV *struct {
		ID      string `json:"id"`
		Summary string `json:"summary"`
	} `json:"osv"`
	Finding *struct {
		OSV          string  `json:"osv"`
		FixedVersion string  `json:"fixed_version"`
		Trace        []frame `json:"trace"`
	} `json:"finding"`
}

type frame struct {
	Module  string `json:"module"`
	Version string `json:"version"`
}

// vulnerability is one id in one module.
type vulnerability struct {
	id, module, version, fixed, summary string
}

func run(report io.Reader, allowFile string, out io.Writer) (ok bool, err error) {
	found, err := parse(report)
	if err != nil {
		return false, fmt.Errorf("read the report: %w", err)
	}
	allowed := map[string]string{}
	if allowFile != "" {
		if allowed, err = readAllowList(allowFile); err != nil {
			return false, err
		}
	}

	ok = true
	unused := maps.Clone(allowed)
	for _, v := range found {
		reason, isAllowed := allowed[v.id]
		switch {
		case v.fixed == "":
			fmt.Fprintf(out, "no fix   %s %s@%s: %s\n", v.id, v.module, v.version, v.summary)
			continue
		case isAllowed:
			fmt.Fprintf(out, "allowed  %s %s@%s, fixed in %s: %s\n", v.id, v.module, v.version, v.fixed, reason)
		default:
			ok = false
			fmt.Fprintf(out, "FIXABLE  %s %s@%s, fixed in %s: %s\n", v.id, v.module, v.version, v.fixed, v.summary)
		}
		delete(unused, v.id)
	}
	for _, id := range slices.Sorted(maps.Keys(unused)) {
		ok = false
		fmt.Fprintf(out, "STALE    %s is in %s, but nothing that has a fix was found under this id\n", id, allowFile)
	}
	if ok {
		fmt.Fprintf(out, "%d known vulnerabilities, none with a fix that is not allowed\n", len(found))
	}
	return ok, nil
}

// parse returns the findings, one for each id and module, in the order of ids.
func parse(report io.Reader) ([]vulnerability, error) {
	summaries := map[string]string{}
	found := map[[2]string]vulnerability{}
	decoder := json.NewDecoder(report)
	messages := 0
	for ; ; messages++ {
		var m message
		err := decoder.Decode(&m)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if m.OSV != nil {
			summaries[m.OSV.ID] = m.OSV.Summary
		}
		if f := m.Finding; f != nil && len(f.Trace) > 0 {
			v := vulnerability{id: f.OSV, module: f.Trace[0].Module, version: f.Trace[0].Version, fixed: f.FixedVersion}
			found[[2]string{v.id, v.module}] = v
		}
	}
	if messages == 0 { // govulncheck always says at least which database it used
		return nil, errors.New("it is empty")
	}
	vulnerabilities := make([]vulnerability, 0, len(found))
	for _, v := range found {
		v.summary = summaries[v.id]
		vulnerabilities = append(vulnerabilities, v)
	}
	slices.SortFunc(vulnerabilities, func(a, b vulnerability) int {
		return strings.Compare(a.id+" "+a.module, b.id+" "+b.module)
	})
	return vulnerabilities, nil
}

// readAllowList returns the reason for each allowed id. Empty lines and those that begin with # are skipped.
func readAllowList(file string) (map[string]string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()

	allowed := map[string]string{}
	lines := bufio.NewScanner(f)
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		id, reason, _ := strings.Cut(line, " ")
		if reason = strings.TrimSpace(reason); reason == "" {
			return nil, fmt.Errorf("%s:%d: %s has no reason; write `%s why it is allowed`", file, number, id, id)
		}
		if _, twice := allowed[id]; twice {
			return nil, fmt.Errorf("%s:%d: %s stands here twice", file, number, id)
		}
		allowed[id] = reason
	}
	return allowed, lines.Err()
}
