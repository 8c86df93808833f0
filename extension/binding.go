package extension

import (
	"slices"
	"strings"

	"github.com/stilehost/stile/capability"
)

// Binding is one name in env, and the grant requested for it.
type Binding struct {
	// Name is a lower-case word: a letter, then letters, digits and "_", at most 64 bytes.
	Name  string
	Grant capability.Grant
}

// find returns the index of the binding with this name, or -1.
func find(bindings []Binding, name string) int {
	return slices.IndexFunc(bindings, func(b Binding) bool { return b.Name == name })
}

// sortBindings puts bindings in byte order of their names.
func sortBindings(bindings []Binding) {
	slices.SortFunc(bindings, func(a, b Binding) int { return strings.Compare(a.Name, b.Name) })
}

// grants returns the grants of bindings.
func grants(bindings []Binding) []capability.Grant {
	all := make([]capability.Grant, len(bindings))
	for i, b := range bindings {
		all[i] = b.Grant
	}
	return all
}

// Describe says in plain words everything that a binding may do, one item a line, for the person who approves it. The result is
// printable.
func Describe(b Binding) []string {
	if b.Grant == nil {
		return []string{"may do something that this version does not know"}
	}
	return b.Grant.Describe()
}

// Harmless reports whether a binding reaches nothing beyond the call and its log.
func (b Binding) Harmless() bool { return b.Grant != nil && b.Grant.Kind().Harmless }

// Hosts reports whether a binding reaches hosts by name.
func (b Binding) Hosts() bool {
	_, ok := b.Grant.(capability.Hoster)
	return ok
}
