// Package capability defines a kind of capability: everything that manifests, command lines, approval, policies, tests and clients
// need to know about it, in one value. Stile's own kinds are in folders below capabilities/. A program that embeds the host can have
// kinds of its own, with the same rights.
package capability

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability/double"
	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/printable"
)

// Reader reads a manifest, Node is a value in it, and Member is a field of an object. Reader.Fields returns the members of an
// object by name, Items the elements of a list and Text a text. Fail records what is wrong and what to write instead. After the first
// problem, all of them return zero values.
type (
	Reader = jsonform.Reader
	Node   = jsonform.Node
	Member = jsonform.Member
)

// Kind is a kind of capability. Do not change it once it is in a [Set].
type Kind struct {
	// Name stands for the kind in manifests and on command lines: a word, or the WIT interface of an embedder.
	Name string
	// Interface is the WIT interface, e.g. "stile:capability/http@0.1.0".
	Interface string
	// Permission is the field of a manifest's short form, which makes a binding of that name. It is empty if there is none.
	Permission string
	// Example is a possible value in a manifest, as JSON. Problems show it.
	Example string
	// Default is the grant that commands for people bind under the kind's name by default. It is nil for none.
	Default Grant
	// Harmless is set if the kind reaches nothing beyond a call and its log: no policy cuts it, and approval needs no
	// person.
	Harmless bool
	// Logs is set if it writes to [Site.Log]. A caller may want to show that separately.
	Logs bool
	// Fixed is set if a call cannot have another binding in place of an approved one, because what it reaches depends on the extension.
	Fixed bool
	// Varied is set if the grant of a binding decides which methods it has.
	Varied bool
	// Globals are names in a guest's global scope that use the first binding of this interface, such as "Math.random". If
	// GlobalBinding is set, they use only the binding of that name.
	Globals       []string
	GlobalBinding string

	// Parse reads a grant from a manifest. It is nil if a manifest cannot ask for the kind. Problems go to r.
	Parse func(r *Reader, n *Node) Grant
	// ParsePermission reads the short form. It is nil if there is none.
	ParsePermission func(r *Reader, n *Node) Grant
	// ParseSpec reads a binding of a command line. It is nil if a command line cannot give one. An error is a
	// *[double.MistakeError].
	ParseSpec func(Spec) (Grant, error)
	// SpecForm is the form of such a binding after "NAME=", e.g. "kv:STORE", and SpecMeans says in one or more lines what it binds. Help
	// shows both. A kind without them is listed by its name.
	SpecForm, SpecMeans string

	// Learn returns the Answerer for a binding of a recorded call, to make a test from the call. It is nil if tests cannot answer
	// recorded operations of the kind.
	Learn func(r *double.Recording, binding string) double.Answerer
}

// Spec is the text after NAME= on a command line: KIND[:ARGUMENT][,OPTIONS].
type Spec struct {
	// Name is the binding's name.
	Name string
	// Argument is what follows the first ":".
	Argument string
	// HasArgument is set if there is a ":".
	HasArgument bool
	Options     string
}

// MistakeError reports what is wrong, and what to write instead.
type MistakeError = double.MistakeError

// Grant is what one binding may do. Its methods are safe for concurrent
// use, and the texts that they return for people are printable.
type Grant interface {
	Kind() *Kind
	// Interface is the WIT interface of the kind.
	Interface() string
	// Document is the value that stands for the grant in a manifest, under the name of the kind, to encode as JSON.
	Document() any
	// Describe returns everything that it may do in plain words, one item a line, for the person who approves it.
	Describe() []string
	// Authority describes the same in the terms of a manifest, to compare line by line.
	Authority() []string
	// Covers reports whether this grant permits everything that asked may do. If in doubt, it returns false.
	Covers(asked Grant) bool
}

// Opener is a grant that becomes a capability at a site. The embedding program makes the capabilities of other grants.
type Opener interface {
	Grant
	// Open makes the capability. ctx bounds only the opening of files. The error is [ErrUnbound] if the site lacks what it
	// needs.
	Open(ctx context.Context, s *Site) (abi.Capability, error)
}

// Laster is a grant whose capability can last from call to call, with what calls leave in it, such as an open page.
type Laster interface {
	Grant
	// Last is Open for a capability that its calls share. The site holds it.
	Last(ctx context.Context, s *Site) (abi.Capability, error)
}

// Owner is a grant of a store that a manifest requests without a name.
type Owner interface {
	Grant
	// Own returns the grant of an extension's own store. store is the name of the extension's stores in its scope, and binding is
	// the name of the binding.
	Own(store, binding string) Grant
}

// Holder is an [Owner] of a store that a person can name, too.
type Holder interface {
	Owner
	// Holds returns the name of the store, and whether there is anything in it.
	Holds(ctx context.Context, s *Site) (store string, has bool, err error)
	// Spec returns what gives the same on a command line, without NAME=.
	Spec() string
}

// Limiter is a grant that a policy's ceiling can reduce to a part. Other grants are removed as a whole or kept.
type Limiter interface {
	Grant
	// Limit returns the largest grant that both this grant and a grant of
	// the ceiling, of any kind, allow. It is nil if they have nothing in
	// common.
	Limit(ceiling []Grant) Grant
}

// Sizer is a grant whose comparison takes long.
type Sizer interface {
	Grant
	// Size returns the number of rules, and how much of them there is to compare.
	Size() (rules, work int)
}

// Merger is a grant that a command line may give in several parts under one name.
type Merger interface {
	Grant
	// Merge adds another part. It returns nil if the two are of different kinds.
	Merge(more Grant) Grant
}

// Nester is a grant of tools that a command line names, and whose own bindings it can give too, as NAME.INNER=SPEC.
type Nester interface {
	Grant
	// Nest returns the grant with the name of its binding, and with the bindings of its tools by their names.
	Nest(name string, inner map[string]Grant) Grant
}

// Reacher is a grant that tells clients what a tool with it can reach. Without it, harmless kinds reach nothing and all
// others reach everything.
type Reacher interface {
	Grant
	// Reach reports whether it can change something, and whether it reaches beyond this machine.
	Reach() (changes, open bool)
}

// Hoster is a grant that reaches hosts by name.
type Hoster interface {
	Grant
	// Hosts returns the patterns of hosts' names: a name, "*.example.com" for the names below one, or "*".
	Hosts() []string
}

// Refuser is a grant that never permits some of the methods that its object has in TypeScript.
type Refuser interface {
	Grant
	// Refuses says why a method is always denied, and what to write instead in the manifest. why is empty if it is not.
	Refuses(method string) (why, fix string)
}

// Remedier is a grant on a command line that can be widened.
type Remedier interface {
	Grant
	// Remedy returns the spec that would allow what was wanted instead of spec, both in the form NAME=SPEC. It is empty if no spec
	// would.
	Remedy(spec string, wanted Grant) string
}

// SecretUser is a grant whose rules can name secrets, which the host sends to the hosts of the rules, or with which it checks what is posted.
type SecretUser interface {
	Grant
	// Secrets returns the names of the secrets, each once, in the order of the rules.
	Secrets() []string
	// Specs returns what gives the same on a command line, without NAME=, as [Kind.ParseSpec] reads it after the name of the kind: what follows the
	// colon, or all from the first comma on if there is no argument.
	// Several are the parts of one binding.
	Specs() []string
}

// Shortener is a grant whose short form in a manifest is not `true`.
type Shortener interface {
	Grant
	// Short returns a value of the short form that may allow as much.
	Short() any
}

// Passer is a grant that hands other bindings of a call on, by their names.
type Passer interface {
	Grant
	// Passes returns the names. A manifest must have a binding of each.
	Passes() []string
}

// ToolCaller is a grant of a manifest to call tools of other extensions, which it names by patterns. What the patterns mean is decided where
// the extension becomes active.
type ToolCaller interface {
	Grant
	// Names reports whether a pattern admits the full name of a tool, and Unmatched returns the patterns that admit none of some tools.
	Names(tool string) bool
	Unmatched(tools []string) []string
	// Unnamed is the error of a call of a tool that no pattern names.
	Unnamed(tool string) error
	// Callees are what the patterns mean, or nil until that is decided.
	Callees() []Callee
	// WithCallees returns the grant with what its patterns mean, in the order of [Callee.Compare].
	WithCallees(callees []Callee) ToolCaller
}

// Callee is an extension that a [ToolCaller] reaches, with everything that the grant can make it do.
type Callee struct {
	// Scope and Extension name it.
	Scope, Extension string
	// Tools are the full names, in byte order, of its tools that the grant may call. Inner are those that other callees call in turn.
	Tools, Inner []string
	// Grants are what it may do itself, by the names of its bindings, without other tools and harmless kinds.
	Grants map[string]Grant
}

// Compare orders callees: first those that the grant may call, then by scope and name.
func (c Callee) Compare(other Callee) int {
	if direct := len(c.Tools) > 0; direct != (len(other.Tools) > 0) {
		if direct {
			return -1
		}
		return 1
	}
	return cmp.Or(strings.Compare(c.Scope, other.Scope), strings.Compare(c.Extension, other.Extension))
}

// All are its grants, in byte order of the names of its bindings.
func (c Callee) All() []Grant {
	all := make([]Grant, 0, len(c.Grants))
	for _, name := range slices.Sorted(maps.Keys(c.Grants)) {
		all = append(all, c.Grants[name])
	}
	return all
}

// Covers calls allowed.Covers(asked). Either may be nil, which allows nothing.
func Covers(allowed, asked Grant) bool {
	return allowed != nil && asked != nil && allowed.Covers(asked)
}

// maxWork bounds the cost of comparing two lists of grants: the product of the sizes of their rules.
const maxWork = 32 << 20

// CoversAll reports whether one grant of allowed covers each grant of asked. It returns false if the comparison would take long.
func CoversAll(allowed, asked []Grant) bool {
	_, a := SizeOf(allowed)
	_, b := SizeOf(asked)
	if a*b > maxWork {
		return false
	}
	for _, g := range asked {
		if !slices.ContainsFunc(allowed, func(by Grant) bool { return Covers(by, g) }) {
			return false
		}
	}
	return true
}

// SizeOf returns how many rules grants have together, and how much of them there is to compare. Only some kinds have rules.
func SizeOf(grants []Grant) (rules, work int) {
	for _, g := range grants {
		if g, ok := g.(Sizer); ok {
			r, w := g.Size()
			rules, work = rules+r, work+w
		}
	}
	return rules, work
}

// Reaches tells what tools with a grant can reach, as [Reacher] does. nil stands for a grant that is not known.
func Reaches(g Grant) (changes, open bool) {
	if r, ok := g.(Reacher); ok {
		return r.Reach()
	}
	harmless := g != nil && g.Kind().Harmless
	return !harmless, !harmless
}

// Same is a Covers for grants that are compared by equality.
func Same(allowed, asked Grant) bool { return reflect.DeepEqual(allowed, asked) }

// JSON writes a value that JSON can always represent, without spaces, and with sorted keys.
func JSON(v any) []byte {
	text, _ := jsonform.Encode(v, "")
	return text
}

// OwnerName is the form of the name of an agent or a user.
const OwnerName = `[a-z0-9][a-z0-9_-]{0,63}`

var storeName = lazyregexp.New(`^((agent|user|run)\.` + OwnerName + `\.|shared\.)?` + OwnerName + `$`)

// StoreNames describes the names that a store can have.
const StoreNames = `a-z, 0-9, "_" and "-"`

// IsStoreName reports whether a command line can name a store like this. The stores of extensions begin with "agent.",
// "user.", "shared." or "run."; all other names are the person's. A name may become part of a file's name.
func IsStoreName(name string) bool { return storeName.MatchString(name) }

// Printable returns s in a form that people can safely read: hidden characters, and those that a terminal acts on, are escaped.
func Printable(s string) string { return printable.Line(s) }
