// Package capability says what a kind of capability is: everything that manifests, command lines, approval, policies, tests
// and clients have to know of it, in one value. A kind of ours lives in its folder below capabilities/, one of a program that
// embeds the host in that program; nothing tells the two apart.
package capability

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability/double"
	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/lazyregexp"
)

// Reader takes a manifest apart, Node is a value in it, and Member a field of an object.
type (
	Reader = jsonform.Reader
	Node   = jsonform.Node
	Member = jsonform.Member
)

// Kind is a kind of capability. Nobody changes it once it is in a [Set].
type Kind struct {
	// Name stands for the kind in manifests and on command lines: a word, or the WIT interface of an embedder.
	Name string
	// Interface is the WIT interface, e.g. "stile:capability/http@0.1.0".
	Interface string
	// Permission is the field of a manifest's short form, which makes a binding of that name; empty where there is none.
	Permission string
	// Example is what a manifest could say of the kind, as JSON. It is shown to who has no such binding.
	Example string
	// Default is what commands for people bind under the kind's name unasked; nil for nothing.
	Default Grant
	// Harmless says that it reaches nothing beyond a call and its log: no policy cuts it, and approval needs no person.
	Harmless bool
	// Logs says that it writes to [Site.Log], which who makes a call may want apart.
	Logs bool
	// Globals are names in a guest's global scope that stand for the first binding of this interface, "Math.random" among
	// them; GlobalBinding is the one binding they stand for, if no other will do.
	Globals       []string
	GlobalBinding string

	// Parse reads what a manifest says; nil where a manifest cannot ask for it. Problems are r's.
	Parse func(r *Reader, n *Node) Grant
	// ParsePermission reads the short form.
	ParsePermission func(r *Reader, n *Node) Grant
	// ParseSpec reads a binding of a command line; nil where none can be given. An error is a *[double.MistakeError].
	ParseSpec func(Spec) (Grant, error)
}

// Spec is what follows NAME= on a command line: KIND[:ARGUMENT][,OPTIONS].
type Spec struct {
	// Name is the binding's.
	Name string
	// Argument is what follows the first ":".
	Argument string
	// HasArgument says whether there is a ":".
	HasArgument bool
	Options     string
}

// MistakeError is what somebody got wrong, and what to write instead.
type MistakeError = double.MistakeError

// Grant is what one binding may do. Its methods are safe for concurrent use, and what they return for people is printable.
type Grant interface {
	Kind() *Kind
	// Interface is the WIT interface of the kind.
	Interface() string
	// Document is what stands for the grant in a manifest, under the name of the kind, to encode as JSON.
	Document() any
	// Describe says in plain words what it may do, one thing a line, for the person who approves it. It says all of it.
	Describe() []string
	// Authority is the same in the terms of a manifest, to compare line by line.
	Authority() []string
	// Covers reports whether all that asked may do is possible under this grant as well. It says no when it is not sure.
	Covers(asked Grant) bool
}

// Opener is a grant that becomes a capability at a site. Others are made by the program that embeds the host.
type Opener interface {
	Grant
	// Open makes the capability. ctx bounds the opening of files only. [ErrUnbound] says that the site has nothing to make it of.
	Open(ctx context.Context, s *Site) (abi.Capability, error)
}

// Owner is a grant of a store, which a manifest asks for without a name.
type Owner interface {
	Grant
	// Own is the grant of the store that an extension has in a scope, of which store is the name, under a binding.
	Own(store, binding string) Grant
}

// Limiter is a grant that a policy's ceiling can cut to a part. Others are cut whole or not at all.
type Limiter interface {
	Grant
	// Limit is the most that this grant and one of the ceiling allow together, of any kind; nil when that is nothing.
	Limit(ceiling []Grant) Grant
}

// Sizer is a grant that is long to compare.
type Sizer interface {
	Grant
	// Size is how many rules it has and how much there is to compare in them.
	Size() (rules, work int)
}

// Merger is a grant of which a command line may give several parts under one name.
type Merger interface {
	Grant
	// Merge adds another part; nil when the two are not of one kind.
	Merge(more Grant) Grant
}

// Reacher is a grant that says what a client should know of a tool that has it. Of any other, harmless kinds reach nothing and
// the rest everything.
type Reacher interface {
	Grant
	// Reach says whether it can change something, and whether it reaches beyond this machine.
	Reach() (changes, open bool)
}

// Hoster is a grant that reaches hosts by name.
type Hoster interface {
	Grant
	// Hosts are the patterns of hosts' names: a name, "*.example.com" for those below one, or "*".
	Hosts() []string
}

// Remedier is a grant of a command line that can be widened.
type Remedier interface {
	Grant
	// Remedy is what would allow what was denied in the place of spec, which is NAME=SPEC as it was given; empty if nothing would.
	Remedy(spec string, denied abi.Denial) string
}

// Shortener is a grant whose short form in a manifest is not `true`.
type Shortener interface {
	Grant
	// Short is a value of the short form that may allow as much.
	Short() any
}

// Covers is allowed.Covers(asked), where either may be nil, which allows nothing.
func Covers(allowed, asked Grant) bool {
	return allowed != nil && asked != nil && allowed.Covers(asked)
}

// Same is a Covers for grants that are compared as a whole.
func Same(allowed, asked Grant) bool { return reflect.DeepEqual(allowed, asked) }

// JSON writes what holds no value that json could refuse, without spaces, and with the keys of maps sorted.
func JSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}

// OwnerName is the form of the name of an agent or a user.
const OwnerName = `[a-z0-9][a-z0-9_-]{0,63}`

var storeName = lazyregexp.New(`^((agent|user)\.` + OwnerName + `\.)?` + OwnerName + `$`)

// StoreNames says what a store can be named.
const StoreNames = `a-z, 0-9, "_" and "-"`

// IsStoreName reports whether a command line can name a store so. Of an agent or a user where it starts with one; it may become part of a file's name.
func IsStoreName(name string) bool { return storeName.MatchString(name) }
