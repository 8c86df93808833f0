package capability

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stilehost/stile/internal/jsonform"
)

// Set is an ordered set of kinds. It is immutable; With returns a larger one.
type Set struct{ kinds []*Kind }

// NewSet returns a set. It panics if two kinds have the same name, or if a kind has only one of Permission and
// ParsePermission, which is a bug in the program.
func NewSet(kinds ...*Kind) Set {
	for i, k := range kinds {
		if slices.ContainsFunc(kinds[:i], func(other *Kind) bool {
			return other.Name == k.Name || other.Permission != "" && other.Permission == k.Permission
		}) {
			panic("two kinds of capability are called " + k.Name)
		}
		if (k.Permission == "") != (k.ParsePermission == nil) {
			panic("the kind of capability " + k.Name + " has only one of Permission and ParsePermission")
		}
	}
	return Set{kinds}
}

// With returns the set with more kinds.
func (s Set) With(kinds ...*Kind) Set { return NewSet(append(slices.Clip(s.kinds), kinds...)...) }

// All returns the kinds.
func (s Set) All() []*Kind { return slices.Clone(s.kinds) }

// Of returns the kind of a WIT interface, the first one if there are several. It is nil if there is none.
func (s Set) Of(iface string) *Kind {
	return s.find(func(k *Kind) bool { return k.Interface == iface })
}

func (s Set) find(is func(*Kind) bool) *Kind {
	if i := slices.IndexFunc(s.kinds, is); i >= 0 {
		return s.kinds[i]
	}
	return nil
}

// names returns the names of some kinds.
func (s Set) names(name func(*Kind) string) []string {
	var names []string
	for _, k := range s.kinds {
		if n := name(k); n != "" {
			names = append(names, n)
		}
	}
	return names
}

// Permissions returns the fields of a manifest's short form.
func (s Set) Permissions() []string { return s.names(func(k *Kind) string { return k.Permission }) }

// PermissionInterface is the interface of the binding that one of these fields makes.
func (s Set) PermissionInterface(name string) string {
	return s.find(func(k *Kind) bool { return k.Permission == name }).Interface
}

// InterfaceIn is the interface of what one binding of a manifest names, also where the binding cannot be read. It is empty if it names none, or
// one whose methods depend on what cannot be read.
func (s Set) InterfaceIn(n *jsonform.Node) string {
	members, _ := n.Value.([]jsonform.Member)
	if len(members) != 1 {
		return ""
	}
	if k := s.find(func(k *Kind) bool { return k.Parse != nil && k.Name == members[0].Key }); k != nil && !k.Varied {
		return k.Interface
	}
	return ""
}

// ParsePermission reads one of these fields.
func (s Set) ParsePermission(r *jsonform.Reader, name string, n *jsonform.Node) Grant {
	return s.find(func(k *Kind) bool { return k.Permission == name }).ParsePermission(r, n)
}

const exampleGrant = `one capability, like {"http": [{"host": "api.example.com"}]} or {"kv": true}`

// Parse reads one binding of a manifest: an object with the kind as its only field.
func (s Set) Parse(r *jsonform.Reader, n *jsonform.Node) Grant {
	members := r.Members(n, exampleGrant)
	if r.Err == nil && len(members) != 1 {
		r.Fail(n, exampleGrant, "a binding is one capability, and this one names %d", len(members))
	}
	if r.Err != nil {
		return nil
	}
	names := s.names(func(k *Kind) string {
		if k.Parse == nil {
			return ""
		}
		return k.Name
	})
	m := members[0]
	if k := s.find(func(k *Kind) bool { return k.Parse != nil && k.Name == m.Key }); k != nil {
		return k.Parse(r, m.Value)
	}
	if strings.Contains(m.Key, ":") {
		return parseCustom(r, m, names)
	}
	r.Fields(n, exampleGrant, names)
	return nil
}

// ParseSpec reads the text KIND[:ARGUMENT][,OPTION]... that a command line gives for the binding of a name. An error is a
// *[MistakeError].
func (s Set) ParseSpec(name, text string) (Grant, error) {
	head, options, _ := strings.Cut(text, ",")
	for _, k := range s.kinds {
		// The name of a kind can be that of a WIT interface, which has a ":" itself.
		rest, is := strings.CutPrefix(head, k.Name)
		if argument, has := strings.CutPrefix(rest, ":"); is && k.ParseSpec != nil && (has || rest == "") {
			return k.ParseSpec(Spec{name, argument, has, options})
		}
	}
	kind, _, _ := strings.Cut(head, ":")
	names := s.names(func(k *Kind) string {
		if k.ParseSpec == nil {
			return ""
		}
		return k.Name
	})
	instead := "one of " + strings.Join(names, ", ")
	if near := jsonform.Nearest(kind, names); near != "" {
		instead = near
	}
	return nil, &MistakeError{Text: fmt.Sprintf("there is no kind %s", jsonform.Quote(kind)), Fix: instead}
}
