// SPDX-License-Identifier: Apache-2.0

package openslo

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The annotations that carry what OpenSLO cannot say. They stand in the metadata of SLO documents.
const (
	annotationSLOID   = AnnotationPrefix + "slo-id"
	annotationClass   = AnnotationPrefix + "class"
	annotationGroupBy = AnnotationPrefix + "group-by"
	annotationUnit    = AnnotationPrefix + "unit"

	annotationMinEvents = AnnotationPrefix + "min-events"
	annotationOwner     = AnnotationPrefix + "owner"
	annotationRunbook   = AnnotationPrefix + "runbook"
)

var knownAnnotations = []string{
	annotationSLOID, annotationClass, annotationGroupBy, annotationUnit, annotationMinEvents, annotationOwner, annotationRunbook,
}

var (
	rfc1123 = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	// metadataKey is a key of labels or annotations: an optional DNS prefix and a name.
	metadataKey = regexp.MustCompile(`^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`)
)

// metadata is the metadata of a document or of an inline indicator.
type metadata struct {
	self        value
	name        string // "" when missing or no good
	displayName string
	labels      object
	annotations object
}

// readMetadata checks a metadata mapping. annotated is the set of annotations of this project that may stand
// in it.
func readMetadata(v value, annotated []string) metadata {
	o, ok := v.object("name", "displayName", "labels", "annotations")
	if !ok {
		return metadata{}
	}
	m := metadata{self: v, displayName: o.optional("displayName")}
	if n, ok := o.need("name", "name it, e.g. chat-ttft"); ok {
		m.name = readName(n)
	}
	if l, ok := o.get("labels"); ok {
		m.labels = readLabels(l)
	}
	if a, ok := o.get("annotations"); ok {
		m.annotations = readAnnotations(a, annotated)
	}
	return m
}

// readName reads a name that other documents refer to by.
func readName(v value) string {
	s, ok := v.text()
	if !ok {
		return ""
	}
	if !rfc1123.MatchString(s) {
		v.problemf("%s is no RFC 1123 name: write up to 63 lower case letters, digits and inner dashes, e.g. chat-ttft", shown(s))
		return ""
	}
	return s
}

// readLabels checks labels: text, or a list of texts, by key.
func readLabels(v value) object {
	o, ok := v.mapping()
	if !ok {
		return o
	}
	for _, key := range o.keys {
		checkKey(o, key)
		l, ok := o.get(key)
		if !ok {
			continue
		}
		if _, single := l.scalar(); single {
			l.text()
			continue
		}
		items, _ := l.list()
		for _, item := range items {
			item.text()
		}
	}
	return o
}

// readAnnotations checks annotations: texts by key, of which those below AnnotationPrefix must be known.
func readAnnotations(v value, known []string) object {
	o, ok := v.mapping()
	if !ok {
		return o
	}
	for _, key := range o.keys {
		checkKey(o, key)
		if a, ok := o.get(key); ok {
			a.text()
		}
		prefix, name, _ := strings.Cut(key, "/")
		prefix += "/"
		switch {
		case prefix != AnnotationPrefix:
			// A typo in the prefix would be a promise that silently means something else.
			if name != "" && nearest(prefix, []string{AnnotationPrefix}) != "" {
				o.fields[key].problemf("unknown annotation: did you mean %s%s?", AnnotationPrefix, name)
			}
		case slices.Contains(known, key):
		case slices.Contains(knownAnnotations, key):
			o.fields[key].problemf("stands on SLO documents only: move it there")
		default:
			o.fields[key].problemf("unknown annotation: %s", instead(key, knownAnnotations))
		}
	}
	return o
}

func checkKey(o object, key string) {
	if !metadataKey.MatchString(key) {
		o.fields[key].problemf("is no valid key: write [prefix/]name of letters, digits and inner dashes, dots and underscores")
	}
}

// annotation is the text of an annotation of this project; false when it is absent or no text.
func (m metadata) annotation(key string) (string, value, bool) {
	v, ok := m.annotations.get(key)
	if !ok {
		return "", v, false
	}
	s, ok := v.scalar()
	return strings.TrimSpace(s), v, ok && strings.TrimSpace(s) != ""
}

// maxMinEvents is far beyond the events that a promise needs to be judged; 1,000 tell a p99.9.
const maxMinEvents = 1e9

// readMinEvents is the min-events annotation, or 1.
func readMinEvents(m metadata) int {
	s, v, ok := m.annotation(annotationMinEvents)
	if !ok {
		return 1
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > maxMinEvents {
		v.problemf("%s is no number of events: write a whole number of at least 1 in quotes, e.g. \"30\"", shown(s))
		return 1
	}
	return n
}

// readOwner is the owner annotation, or "".
func readOwner(m metadata) string {
	s, _, _ := m.annotation(annotationOwner)
	return s
}

// readRunbook is the runbook annotation, or "".
func readRunbook(m metadata) string {
	s, v, ok := m.annotation(annotationRunbook)
	if !ok {
		return ""
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		v.problemf("%s is no URL of a page: write e.g. https://wiki.example.com/chat-ttft", shown(s))
		return ""
	}
	return s
}
