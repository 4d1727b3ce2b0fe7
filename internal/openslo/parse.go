// SPDX-License-Identifier: Apache-2.0

package openslo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Source is the content of one file.
type Source struct {
	Name string // as it stands in problems and positions
	Data []byte
}

// The versions of documents that are read.
const (
	APIVersionOpenSLO = "openslo/v1"
	APIVersionPolicy  = AnnotationPrefix + "v1alpha1"
)

// Kind is the kind of a document.
type Kind string

// The kinds.
const (
	KindService                 Kind = "Service"
	KindSLI                     Kind = "SLI"
	KindSLO                     Kind = "SLO"
	KindViolationPolicy         Kind = "ViolationPolicy"
	KindDataSource              Kind = "DataSource"
	KindAlertPolicy             Kind = "AlertPolicy"
	KindAlertCondition          Kind = "AlertCondition"
	KindAlertNotificationTarget Kind = "AlertNotificationTarget"
	KindMaintenanceWindow       Kind = "MaintenanceWindow"
)

// kinds is in reading order: a kind is read after those it refers to.
var kinds = []Kind{
	KindService, KindDataSource, KindAlertNotificationTarget, KindAlertCondition, KindAlertPolicy,
	KindSLI, KindSLO, KindViolationPolicy, KindMaintenanceWindow,
}

// apiVersion is the version of a kind's documents.
func (k Kind) apiVersion() string {
	if k == KindViolationPolicy || k == KindMaintenanceWindow {
		return APIVersionPolicy
	}
	return APIVersionOpenSLO
}

// Parse reads sources, each with any number of YAML documents, into one catalog. The error is nil or [Problems]
// with everything that is wrong in any of them; the catalog is then nil.
func Parse(sources ...Source) (*Catalog, error) { return ParseWith(Options{}, sources...) }

// ParseWith is [Parse] with options.
func ParseWith(opts Options, sources ...Source) (*Catalog, error) {
	return parse(&journal{}, opts, sources)
}

// Options are what a caller adds to the checks of this package. The zero value adds nothing.
type Options struct {
	// Check tells what is wrong with an OTTL expression; nil accepts all. It is called once for each expression
	// that stands in the files. What is in its error becomes a problem at the expression's place.
	Check func(signal Signal, kind ExpressionKind, expression string) error
}

// ExpressionKind is what an OTTL expression is for.
type ExpressionKind string

// The kinds of expressions, which are the keys that they stand behind.
const (
	ExpressionCondition ExpressionKind = "condition" // true for the events that count
	ExpressionValue     ExpressionKind = "value"     // what is measured
	ExpressionCounted   ExpressionKind = "counted"   // a condition, too: true for what adds to a rate
)

func parse(log *journal, opts Options, sources []Source) (*Catalog, error) {
	p := &parser{
		journal:     log,
		opts:        opts,
		documents:   make(map[Kind][]document),
		names:       make(map[Kind]map[string]Position),
		dataSources: make(map[string]DataSource),
		indicators:  make(map[string]indicator),
		slos:        make(map[string]sloDocument),
		services:    make(map[string][]string),
		ids:         make(map[string]Position),

		targets:         make(map[string]AlertNotificationTarget),
		alertConditions: make(map[string]alertCondition),
		alertPolicies:   make(map[string]alertPolicy),
	}
	for _, src := range sources {
		p.catalog.Files = append(p.catalog.Files, src.Name)
		for _, doc := range documents(src, log) {
			p.sort(doc)
		}
	}
	for _, kind := range kinds {
		for _, doc := range p.documents[kind] {
			p.read(doc)
		}
	}
	if err := log.err(); err != nil {
		return nil, err
	}
	c := &p.catalog
	slices.SortFunc(c.Services, func(a, b Service) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(c.SLOs, func(a, b SLO) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(c.Policies, func(a, b ViolationPolicy) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(c.Maintenance, func(a, b MaintenanceWindow) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(c.DataSources, func(a, b DataSource) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(c.AlertPolicies, func(a, b AlertPolicy) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(c.AlertConditions, func(a, b AlertCondition) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(c.NotificationTargets, func(a, b AlertNotificationTarget) int { return cmp.Compare(a.Name, b.Name) })
	return c, nil
}

// parser is the state of one Parse: first every document is sorted by kind and its name is noted, so that
// references may point forward and into other files, then the kinds are read in order.
type parser struct {
	*journal
	opts        Options
	catalog     Catalog
	documents   map[Kind][]document
	names       map[Kind]map[string]Position // also of documents with problems
	dataSources map[string]DataSource        // by name, as those below
	indicators  map[string]indicator         // SLI documents
	slos        map[string]sloDocument
	services    map[string][]string // the SLO documents of a service
	ids         map[string]Position // slo_id → where

	targets         map[string]AlertNotificationTarget
	alertConditions map[string]alertCondition
	alertPolicies   map[string]alertPolicy
}

// document is one that was told by kind.
type document struct {
	object
	kind Kind
	meta metadata
}

// sort files a document under its kind.
func (p *parser) sort(doc value) {
	o, ok := doc.object("apiVersion", "kind", "metadata", "spec")
	if !ok {
		p.incomplete = true
		return
	}
	kind, ok := readKind(o)
	if !ok {
		p.incomplete = true
		return
	}
	d := document{object: o, kind: kind}
	if m, ok := o.need("metadata", "name the document, e.g. metadata: {name: chat-ttft}"); ok {
		var annotated []string
		if kind == KindSLO {
			annotated = knownAnnotations
		}
		d.meta = readMetadata(m, annotated)
	}
	if d.meta.name == "" {
		p.incomplete = true
	} else {
		p.register(d)
	}
	p.documents[kind] = append(p.documents[kind], d)
}

func readKind(o object) (Kind, bool) {
	k, haveKind := o.need("kind", "write "+either(strs(kinds)))
	versions := APIVersionOpenSLO + ", or " + APIVersionPolicy + " for a ViolationPolicy or MaintenanceWindow"
	v, haveVersion := o.need("apiVersion", "write "+versions)
	if !haveKind || !haveVersion {
		return "", false
	}
	kind, okKind := oneOf(k, kinds...)
	version, okVersion := v.text()
	if !okVersion {
		return "", false
	}
	want := kind.apiVersion()
	known := version == APIVersionOpenSLO || version == APIVersionPolicy
	switch {
	case okKind && version != want:
		v.problemf("%s is not supported for kind %s: write %s", shown(version), kind, want)
		return "", false
	case !known:
		v.problemf("%s is not supported: write %s", shown(version), versions)
		return "", false
	}
	return kind, okKind
}

// register notes the name of a document, which no other of its kind may have.
func (p *parser) register(d document) {
	names := p.names[d.kind]
	if names == nil {
		names = make(map[string]Position)
		p.names[d.kind] = names
	}
	at, _ := d.fields["metadata"].mapping()
	name := at.fields["name"]
	if first, taken := names[d.meta.name]; taken {
		name.problemf("%s %s stands twice, first at %s:%d: rename one", d.kind, shown(d.meta.name), first.File, first.Line)
		return
	}
	names[d.meta.name] = name.pos()
}

// maxGuesses is how many problems may stand before near misses are no longer looked for among the names of
// documents: thousands of names, thousands of times, would take minutes.
const maxGuesses = 100

// unresolved reports a reference to a document that is not there. One that is there but has problems of its
// own does not count.
func (p *parser) unresolved(v value, kind Kind, name string) {
	if _, broken := p.names[kind][name]; !broken {
		p.unresolvedAmong(v, kind, name, func() []string { return sortedKeys(p.names[kind]) })
	}
}

// unresolvedAmong is unresolved for a name that could have been one of those that known lists.
func (p *parser) unresolvedAmong(v value, kind Kind, name string, known func() []string) {
	if p.incomplete {
		return
	}
	hint := "load its file too"
	if len(p.problems) < maxGuesses {
		names := known()
		if near := nearest(name, names); near != "" {
			hint = fmt.Sprintf("did you mean %s?", near)
		} else if len(names) > 0 && len(names) <= 10 {
			hint = "known are " + strings.Join(names, ", ")
		}
	}
	v.problemf("no %s is named %s: %s", kind, shown(name), hint)
}

func (p *parser) read(d document) {
	if d.kind == KindService && !d.has("spec") {
		p.readService(d, object{})
		return
	}
	spec, ok := d.need("spec", "say what the "+string(d.kind)+" is")
	if !ok {
		return
	}
	switch d.kind {
	case KindService:
		if o, ok := spec.object("description"); ok {
			p.readService(d, o)
		}
	case KindSLI:
		p.indicators[d.meta.name] = p.readIndicatorDocument(d, spec)
	case KindSLO:
		p.readSLO(d, spec)
	case KindViolationPolicy:
		p.readPolicy(d, spec)
	case KindMaintenanceWindow:
		p.readMaintenance(d, spec)
	case KindDataSource:
		p.readDataSource(d.head(), spec)
	case KindAlertNotificationTarget:
		if t, ok := p.readNotificationTarget(d.head(), spec); ok {
			p.targets[t.Name] = t
			p.catalog.NotificationTargets = append(p.catalog.NotificationTargets, t)
		}
	case KindAlertCondition:
		if c, ok := p.readAlertCondition(d.head(), spec); ok {
			p.alertConditions[c.Name] = c
			p.catalog.AlertConditions = append(p.catalog.AlertConditions, c.AlertCondition)
		}
	case KindAlertPolicy:
		if a, ok := p.readAlertPolicy(d.head(), spec); ok {
			p.alertPolicies[a.Name] = a
			p.catalog.AlertPolicies = append(p.catalog.AlertPolicies, a.AlertPolicy)
		}
	}
}

func (p *parser) readService(d document, spec object) {
	p.catalog.Services = append(p.catalog.Services, Service{
		Name: d.meta.name, DisplayName: d.meta.displayName, Description: readDescription(spec), Position: d.pos(),
	})
}

func (p *parser) readIndicatorDocument(d document, spec value) indicator {
	ind := p.readIndicatorSpec(spec)
	ind.Name = d.meta.name
	ind.ok = ind.ok && d.meta.name != ""
	return ind
}

// readDescription reads spec.description, which OpenSLO limits.
func readDescription(o object) string {
	const most = 1050
	s := o.optional("description")
	if n := len([]rune(s)); n > most {
		o.fields["description"].problemf("is %d characters long: OpenSLO allows %d", n, most)
	}
	return s
}
