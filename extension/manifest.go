// Package extension reads what an extension asks for: its manifest, and the bindings that a person gives on a command
// line. Both become the same typed grants, and grants become capabilities. Reading is strict, because a person approves
// what is read: what is unknown, doubled or ambiguous is refused, with the place where it stands and what to write instead.
package extension

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Manifest says what an extension is, which tools it offers and which bindings it asks for. It grants nothing.
type Manifest struct {
	// Name is kebab-case: lower-case words with "-" between them, at most 64 bytes.
	Name string
	// Version is a semantic version, e.g. "1.2.0".
	Version string
	// Description is one paragraph for the person who approves the extension, at most 1,000 bytes.
	Description string
	// Tools are the names of the tools, in byte order: the same set as the code exports.
	Tools []string
	// Bindings are what the extension asks for, in byte order of their names; the short form `permissions` is among them.
	Bindings []Binding
}

// ManifestError is the first problem of a manifest.
type ManifestError struct {
	// Path leads to the value, e.g. "bindings.github.http[0].path"; empty for the manifest itself.
	Path string
	// Line and Column count from 1; a column is a character.
	Line, Column int
	// Message says what is wrong.
	Message string
	// Instead is what to write.
	Instead string
}

// Error implements error.
func (e *ManifestError) Error() string {
	var path string
	if e.Path != "" {
		path = e.Path + ": "
	}
	return fmt.Sprintf("manifest line %d, column %d: %s%s; write %s", e.Line, e.Column, path, e.Message, e.Instead)
}

const (
	maxName        = 64
	maxVersion     = 64
	maxDescription = 1000
	maxTools       = 256
	maxBindings    = 64
)

var (
	extensionName = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)
	wordName      = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	semver        = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)` +
		`(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?` +
		`(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$`)
)

const exampleManifest = `{"name": "github", "version": "1.0.0", "description": "...", "tools": ["create_pr"]}`

// Parse reads a manifest of at most 256 KiB, in the long form, the short form or both. An error is a *[ManifestError].
func Parse(text []byte) (*Manifest, error) {
	r := &reader{text: text}
	root := r.parse()
	if r.err != nil {
		return nil, r.err
	}
	fields := r.fields(root, exampleManifest,
		[]string{"name", "version", "description", "tools", "permissions", "bindings"},
		"name", "version", "description", "tools")
	if r.err != nil {
		return nil, r.err
	}
	m := &Manifest{
		Name:        r.match(fields["name"], extensionName, maxName, `lower-case words with "-" between them, like "my-notes"`),
		Version:     r.match(fields["version"], semver, maxVersion, `three numbers, like "1.2.0"`),
		Description: r.description(fields["description"]),
		Tools:       r.tools(fields["tools"]),
		Bindings:    r.bindings(fields["permissions"], fields["bindings"]),
	}
	if r.err != nil {
		return nil, r.err
	}
	return m, nil
}

// match reads text of a given form.
func (r *reader) match(n *node, form *regexp.Regexp, limit int, example string) string {
	s := r.str(n, example)
	switch {
	case r.err != nil:
	case len(s) > limit:
		r.fail(n, fmt.Sprintf("at most %d bytes", limit), "%s has %d bytes", quote(s), len(s))
	case !form.MatchString(s):
		r.fail(n, example, "%s is not of this form", quote(s))
	}
	return s
}

func (r *reader) description(n *node) string {
	s := r.str(n, "what the extension does, in one paragraph")
	switch {
	case r.err != nil:
	case strings.TrimSpace(s) == "":
		r.fail(n, "what the extension does, in one paragraph", "the description is empty")
	case len(s) > maxDescription:
		r.fail(n, fmt.Sprintf("at most %d bytes", maxDescription), "the description has %d bytes", len(s))
	default:
		if i := strings.IndexFunc(s, unseen); i >= 0 {
			r.fail(n, "printable text", "the description holds the character %+q", []rune(s[i:])[0])
		}
	}
	return s
}

// unseen reports what makes text look other than it is: control characters, bidi overrides, zero-width characters.
func unseen(c rune) bool { return !unicode.IsGraphic(c) }

func (r *reader) tools(n *node) []string {
	var tools []string
	for _, item := range r.items(n, maxTools, `["create_pr"]`) {
		name := r.match(item, wordName, maxName, `a lower-case name, like "create_pr"`)
		if slices.Contains(tools, name) {
			r.fail(item, "each tool once", "the tool %s is here twice", quote(name))
		}
		tools = append(tools, name)
	}
	slices.Sort(tools)
	return tools
}

// bindings reads the short form and the long form into one list.
func (r *reader) bindings(short, long *node) []Binding {
	var all []Binding
	add := func(n *node, b Binding) {
		if find(all, b.Name) >= 0 {
			r.fail(n, "it under another name, or in one place only", "the binding %s is also made by permissions", quote(b.Name))
		}
		all = append(all, b)
	}
	if short != nil {
		known := r.fields(short, `{"network": ["api.example.com"], "workspace": "read"}`, permissionNames)
		for _, name := range permissionNames {
			if n := known[name]; n != nil {
				add(n, Binding{Name: name, Grant: r.permission(name, n)})
			}
		}
	}
	if long != nil {
		for _, m := range r.members(long, `{"notes": {"workspace": {"path": "/notes"}}}`) {
			if problem := bindingNameProblem(m.key); problem != "" {
				r.failAt(m.offset, m.value.path, `a lower-case name, like "notes"`, "%s %s", quote(m.key), problem)
			}
			add(m.value, Binding{Name: m.key, Grant: r.grant(m.value)})
		}
	}
	if len(all) > maxBindings {
		r.fail(long, fmt.Sprintf("at most %d", maxBindings), "there are %d bindings", len(all))
	}
	sortBindings(all)
	return all
}

// bindingNameProblem says why a name cannot be a property of env, or nothing. A promise is what has `then`, and
// `constructor` and `prototype` are on every object.
func bindingNameProblem(name string) string {
	switch {
	case len(name) > maxName:
		return fmt.Sprintf("has %d bytes; %d are allowed", len(name), maxName)
	case !wordName.MatchString(name):
		return "is not of this form"
	case name == "then" || name == "constructor" || name == "prototype":
		return "means something else in JavaScript"
	default:
		return ""
	}
}
