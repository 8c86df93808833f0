// Package openapi makes extensions out of OpenAPI documents: 3.0, 3.1 and Swagger 2.0, as JSON or YAML. Each operation becomes a tool, and
// all share one http binding, whose rule has the server's host, the prefix of its paths and the methods that the operations use. The
// document is a stranger's text: nothing that it names is fetched, reading it is bounded, and the code of the extension is the same
// whatever the document says. Only a table differs.
package openapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/internal/printable"
)

// Limits of one extension. The host compiles at most 1 MiB of schemas for one, and validates at most 1,000 tools.
const (
	MaxTools    = extension.MaxTools
	maxSchemas  = 960 << 10 // bytes of the input schemas of all tools
	maxTable    = 6 << 20   // bytes of the table of operations
	maxSchema   = 8 << 10   // bytes of one input schema, before all of them are too large
	leastSchema = 128
)

// MaxExtensions is how many extensions one document becomes at most.
const MaxExtensions = 16

// Binding is the name of the http binding in env.
const Binding = "api"

// Options choose what a document becomes. The zero value takes all of it.
type Options struct {
	// Name is the extension's name. Default: made of the document's title. If there are several extensions, the second is called NAME-2.
	Name string
	// Server is an absolute URL to use in place of the document's servers.
	Server string
	// Include are patterns as in path.Match, of which one must match a tool's name, or the path of its operation if it has a "/". Default: all.
	Include []string
	// Tags are tags of operations, of which an operation must have one, in any case of letters. Default: all.
	Tags []string
	// Credential is the name of a secret that the host adds to each request, and As how, as in a rule of http. Default: none.
	Credential, As string
}

// Draft is an extension made of a document.
type Draft struct {
	// Name is its name, and Tools how many tools it has.
	Name  string
	Tools int
	// Tags are the tags of its operations, in the document's order, when the document became several extensions.
	Tags []string
	// Manifest and Files are its parts. The entry is [Entry].
	Manifest []byte
	Files    map[string][]byte
}

// Entry is the entry file of every draft.
const Entry = "index.ts"

// Result is what a document became.
type Result struct {
	// Drafts has at least one draft. Together they have all chosen operations.
	Drafts []Draft
	// Title and Server are those of the document.
	Title, Server string
	// As is how the credential is sent: Options.As, or else what the document says, or else bearer. It is empty without a credential.
	As string
	// Auth says how the API wants to be authenticated, if the document says it.
	Auth []Auth
	// LeftOut says which operations did not become tools, by reason.
	LeftOut []LeftOut
	// Simplified counts tools whose schema says less than the document, so that all of them fit.
	Simplified int
}

// Auth is a way of authenticating that a document names.
type Auth struct {
	// As is the way in the form of a rule of http, such as "bearer" or "header:X-Key".
	As string
	// Scheme is the document's name for it.
	Scheme string
}

// LeftOut are operations that did not become tools.
type LeftOut struct {
	Reason string
	Count  int
	// First is one of them.
	First string
}

// DocumentError reports a document that cannot become an extension.
type DocumentError struct {
	// Place is a JSON pointer into the document. It is empty for the whole.
	Place string
	// Text says what is wrong, and Fix what to do.
	Text, Fix string
}

// Error implements error.
func (e *DocumentError) Error() string {
	text := e.Text
	if e.Place != "" {
		text = printable.Line(e.Place) + ": " + text
	}
	if e.Fix != "" {
		text += "; " + e.Fix
	}
	return text
}

// Generate makes drafts of a document. An error is a *[DocumentError], or an *[OptionError].
func Generate(text []byte, o Options) (*Result, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	root, err := decode(text)
	if err != nil {
		return nil, err
	}
	d := &document{root: root, reasons: map[string]*LeftOut{}}
	if err := d.readVersion(); err != nil {
		return nil, err
	}
	info := object(root["info"])
	title := prose(str(info["title"]), 100)
	name := o.Name
	if name == "" {
		name = extensionName(title)
	}
	if d.server, err = d.chooseServer(o.Server); err != nil {
		return nil, err
	}
	all := d.operations(name, o)
	if d.tooMuch() {
		return nil, errTooLong
	}
	if len(all) == 0 {
		return nil, d.nothing(o)
	}
	if len(all) > MaxTools*MaxExtensions {
		return nil, &DocumentError{"/paths", fmt.Sprintf("%d operations are more than %d extensions can have", len(all), MaxExtensions), "choose some with --tag or --include"}
	}
	result := &Result{Title: title, Server: d.server.text(), Auth: d.auth()}
	if o.Credential != "" && o.As == "" {
		o.As = "bearer"
		if len(result.Auth) > 0 {
			o.As = result.Auth[0].As
		}
	}
	result.As = o.As
	bins := pack(all)
	for i, bin := range bins {
		draft := Draft{Name: name}
		if i > 0 {
			draft.Name = numbered(name, i+1)
		}
		if len(bins) > 1 {
			draft.Tags = tagsOf(bin)
		}
		simplified, err := d.write(&draft, bin, title, str(info["version"]), o)
		if err != nil {
			return nil, err
		}
		if draft.Tools == 0 {
			continue
		}
		result.Simplified += simplified
		result.Drafts = append(result.Drafts, draft)
	}
	result.LeftOut = d.leftOut()
	if len(result.Drafts) == 0 {
		return nil, d.nothing(o)
	}
	return result, nil
}

// OptionError reports an option that cannot be used.
type OptionError struct {
	// Option is the flag of the option.
	Option string
	Text   string
}

// Error implements error.
func (e *OptionError) Error() string { return e.Option + " " + e.Text }

func (o Options) check() error {
	if o.Name != "" && !extension.IsName(o.Name) {
		return &OptionError{"--name", fmt.Sprintf(`%s is no name: write lower-case words with "-" between them`, quoted(o.Name))}
	}
	if len(o.Name) > maxExtensionName {
		return &OptionError{"--name", fmt.Sprintf("%s has %d bytes; %d are allowed, so that the tools have names of their own", quoted(o.Name), len(o.Name), maxExtensionName)}
	}
	for _, glob := range o.Include {
		if _, err := path.Match(glob, ""); err != nil {
			return &OptionError{"--include", quoted(glob) + " is no pattern"}
		}
	}
	if o.As != "" && o.Credential == "" {
		return &OptionError{"--as", "needs --credential"}
	}
	return nil
}

// errTooLong is the error for a document that takes too much work.
var errTooLong error = &DocumentError{"", "converting the document takes too long", "choose fewer operations with --tag or --include"}

// nothing is the error for a document of which nothing is left.
func (d *document) nothing(o Options) error {
	e := &DocumentError{Place: "/paths", Text: "no operation can become a tool"}
	for _, left := range d.leftOut() {
		e.Text += fmt.Sprintf("; %d: %s (%s)", left.Count, left.Reason, left.First)
	}
	if len(o.Include)+len(o.Tags) > 0 {
		e.Text, e.Fix = "no operation matches --include and --tag", "the tags are: "+printable.Short(strings.Join(d.tags, ", "), 500)
	}
	return e
}

// leftOut lists the reasons, the most frequent first.
func (d *document) leftOut() []LeftOut {
	var all []LeftOut
	for _, l := range d.reasons {
		all = append(all, *l)
	}
	slices.SortFunc(all, func(a, b LeftOut) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Reason, b.Reason))
	})
	return all
}

// pack divides operations into extensions. Those with the same first tag stay together if they fit.
func pack(all []*operation) (bins [][]*operation) {
	if len(all) <= MaxTools {
		return [][]*operation{all}
	}
	groups, order := map[string][]*operation{}, []string{}
	for _, o := range all {
		if groups[o.tag] == nil {
			order = append(order, o.tag)
		}
		groups[o.tag] = append(groups[o.tag], o)
	}
	var bin []*operation
	for _, tag := range order {
		for piece := range slices.Chunk(groups[tag], MaxTools) {
			if len(bin)+len(piece) > MaxTools {
				bins = append(bins, bin)
				bin = nil
			}
			bin = append(bin, piece...)
		}
	}
	return append(bins, bin)
}

func tagsOf(bin []*operation) (tags []string) {
	for _, o := range bin {
		if o.tag != "" && (len(tags) == 0 || tags[len(tags)-1] != o.tag) {
			tags = append(tags, o.tag)
		}
	}
	return tags
}

func numbered(name string, n int) string {
	end := fmt.Sprintf("-%d", n)
	return strings.TrimRight(name[:min(len(name), maxExtensionName-len(end))], "-") + end
}

// compact is JSON without spaces and without escapes for HTML.
func compact(v any) ([]byte, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, errors.Join(errors.New("write JSON"), err)
	}
	return []byte(strings.TrimSuffix(b.String(), "\n")), nil
}
