package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/capability/double"
)

// Kind is the capability acme:crm/contacts. With it in a set, manifests, approval, policies and tests treat the address book like a
// capability of Stile's own:
//
//	kinds := capabilities.Builtin.With(Kind)
//	manifest, err := extension.ParseWith(kinds, text)
//
// A manifest says {} for everybody in the book, or names people: {"only": ["Ada Lovelace"]}. The options of a site are the [Book].
var Kind = &capability.Kind{Name: contacts, Interface: contacts, Example: "{}", Parse: parse}

const (
	contacts = "acme:crm/contacts@1.0.0"
	maxOnly  = 100
)

// Rights say who may be looked up.
type Rights struct {
	Only []string `json:"only,omitempty"` // names; nil means everybody
}

func parse(r *capability.Reader, n *capability.Node) capability.Grant {
	g := Rights{}
	only := r.Fields(n, `{"only": ["Ada Lovelace"]}`, []string{"only"})["only"]
	if only == nil {
		return g
	}
	for _, item := range r.Items(only, maxOnly, `["Ada Lovelace"]`) {
		g.Only = append(g.Only, r.Text(item, `"Ada Lovelace"`))
	}
	slices.Sort(g.Only)
	return g
}

// Kind implements [capability.Grant].
func (Rights) Kind() *capability.Kind { return Kind }

// Interface implements [capability.Grant].
func (Rights) Interface() string { return contacts }

// Document implements [capability.Grant].
func (g Rights) Document() any { return g }

// Describe implements [capability.Grant].
func (g Rights) Describe() []string {
	if g.Only == nil {
		return []string{"may look up everybody in the address book"}
	}
	return []string{capability.Printable("may look up in the address book only " + strings.Join(g.Only, ", "))}
}

// Authority implements [capability.Grant].
func (g Rights) Authority() []string {
	if g.Only == nil {
		return []string{"contacts"}
	}
	lines := make([]string, len(g.Only))
	for i, name := range g.Only {
		lines[i] = capability.Printable("contacts " + name)
	}
	return lines
}

// Covers implements [capability.Grant].
func (g Rights) Covers(asked capability.Grant) bool {
	a, ok := asked.(Rights)
	return ok && (g.Only == nil || a.Only != nil && !slices.ContainsFunc(a.Only, func(name string) bool { return !g.reaches(name) }))
}

func (g Rights) reaches(name string) bool { return g.Only == nil || slices.Contains(g.Only, name) }

// Limit implements [capability.Limiter].
func (g Rights) Limit(ceiling []capability.Grant) capability.Grant {
	var only []string
	for _, c := range ceiling {
		switch c, ok := c.(Rights); {
		case !ok:
		case c.Covers(g):
			return g
		case g.Only == nil:
			only = append(only, c.Only...)
		default:
			only = append(only, slices.DeleteFunc(slices.Clone(g.Only), func(name string) bool { return !c.reaches(name) })...)
		}
	}
	if len(only) == 0 {
		return nil
	}
	slices.Sort(only)
	return Rights{slices.Compact(only)}
}

// Reach implements [capability.Reacher].
func (Rights) Reach() (changes, open bool) { return false, false }

// Open implements [capability.Opener].
func (g Rights) Open(_ context.Context, s *capability.Site) (abi.Capability, error) {
	book, ok := s.Options(Kind).(Book)
	if !ok {
		return nil, capability.ErrUnbound
	}
	return g.of(book), nil
}

// of returns the part of a book that may be looked at.
func (g Rights) of(book Book) Book {
	part := maps.Clone(book)
	maps.DeleteFunc(part, func(name string, _ Contact) bool { return !g.reaches(name) })
	return part
}

// Double implements [double.Doubler] with the people of a test: {"Ada Lovelace": "ada@example.com"}.
func (g Rights) Double(_ context.Context, t *double.Test, answers json.RawMessage) (abi.Capability, error) {
	people, err := double.Members[string](t, answers, `{"Ada Lovelace": "ada@example.com"}`)
	if err != nil {
		return nil, err
	}
	book := Book{}
	for name, email := range people {
		if !g.reaches(name) {
			return nil, t.Wrong(fmt.Sprintf("[%s]: the binding does not reach this person", double.Quoted(name)), "somebody of `only`")
		}
		book[name] = Contact{Name: name, Email: email}
	}
	return book, nil
}
