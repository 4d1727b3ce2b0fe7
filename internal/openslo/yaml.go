// SPDX-License-Identifier: Apache-2.0

package openslo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

const (
	// maxFileSize bounds one file. A thousand SLOs are well below 1 MiB.
	maxFileSize = 4 << 20
	// maxAliasNodes bounds what the YAML aliases of all files together may expand to, so that a few lines of
	// aliases to aliases ("billion laughs") are a problem and not an outage.
	maxAliasNodes = 100_000
)

var (
	yamlErrorLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)
	// parserError tells the errors of the library's parser from those of its scanner: it counts their lines
	// from 0.
	parserError = regexp.MustCompile(`^did not find expected (<|'|key|node content)`)
)

// documents splits a source into its documents, which are YAML's or the items of a list in one, with aliases replaced by
// what they stand for. Empty documents are left out.
func documents(src Source, log *journal) []value {
	if len(src.Data) > maxFileSize {
		log.incomplete = true
		log.add(Problem{File: src.Name, Line: 1, Message: fmt.Sprintf(
			"is longer than %d bytes: split it", maxFileSize)})
		return nil
	}
	var docs []value
	decoder := yaml.NewDecoder(bytes.NewReader(src.Data))
	for {
		var node yaml.Node
		err := decoder.Decode(&node)
		if errors.Is(err, io.EOF) {
			return docs
		}
		if err != nil {
			log.incomplete = true
			log.add(syntaxProblem(src.Name, err))
			return docs
		}
		if node.Kind != yaml.DocumentNode || len(node.Content) == 0 {
			continue
		}
		e := expander{journal: log, open: make(map[*yaml.Node]bool)}
		root := e.expand(node.Content[0])
		if e.problem != "" {
			log.incomplete = true
			log.add(Problem{File: src.Name, Line: max(e.line, 1), Message: e.problem})
			continue
		}
		doc := value{log: log, file: src.Name, node: root}
		switch {
		case doc.null():
		case root.Kind == yaml.SequenceNode: // OpenSLO's own tools read and write lists of documents
			docs = append(docs, doc.listOrNone()...)
		default:
			docs = append(docs, doc)
		}
	}
}

// syntaxProblem turns an error of the YAML library, which tells the line in its text only, into a Problem.
func syntaxProblem(file string, err error) Problem {
	text := err.Error()
	line := 1
	if m := yamlErrorLine.FindStringSubmatch(text); m != nil {
		text = text[len(m[0]):]
		if n, err := strconv.Atoi(m[1]); err == nil {
			line = max(n, 1)
		}
		if parserError.MatchString(text) {
			line++
		}
	}
	return Problem{File: file, Line: line, Message: "is not YAML: " + text}
}

// expander replaces alias nodes by copies of their anchors' nodes. The copies keep the anchor's lines: that is
// where a mistake in them is put right.
type expander struct {
	*journal
	open    map[*yaml.Node]bool // anchors being copied, to see one that contains itself
	line    int
	problem string
}

func (e *expander) expand(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return e.copyOf(n)
	}
	for i, c := range n.Content {
		n.Content[i] = e.expand(c)
	}
	return n
}

func (e *expander) copyOf(n *yaml.Node) *yaml.Node {
	if e.problem != "" {
		return n
	}
	if n.Kind == yaml.AliasNode {
		target := n.Alias
		if e.open[target] {
			e.line, e.problem = n.Line, fmt.Sprintf("alias *%s stands inside its own anchor: write the value out", n.Value)
			return n
		}
		e.open[target] = true
		defer delete(e.open, target)
		return e.copyOf(target)
	}
	if e.copied++; e.copied > maxAliasNodes {
		e.line, e.problem = n.Line, fmt.Sprintf("aliases stand for more than %d values: write them out", maxAliasNodes)
		return n
	}
	c := *n
	c.Content = make([]*yaml.Node, len(n.Content))
	for i, child := range n.Content {
		c.Content[i] = e.copyOf(child)
	}
	return &c
}
