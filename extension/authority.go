package extension

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/stilehost/stile/capabilities/http"
)

// Covers reports whether all that asked may do is possible under allowed as well. What it says yes to is so, and a person's
// approval may rest on it; it says no when it is not sure. Names do not matter: each binding of asked has to be covered by
// one of allowed. It is not sure about very many or very long rules. Stores are compared by name, so bindings of two manifests are compared before [Manifest.Own].
func Covers(allowed, asked []Binding) bool {
	if size(allowed)*size(asked) > maxSize {
		return false
	}
	for _, b := range asked {
		if !slices.ContainsFunc(allowed, func(a Binding) bool { return covers(a.Grant, b.Grant) }) {
			return false
		}
	}
	return true
}

// maxSize bounds what comparing two lists of bindings takes, by the product of the sizes of their rules.
const maxSize = 32 << 20

func size(bindings []Binding) int {
	n := 0
	for _, b := range bindings {
		if g, ok := b.Grant.(HTTP); ok {
			n += http.Size(slices.Concat(append(slices.Clip(g.Within), g.Rules)...))
		}
	}
	return n
}

func covers(allowed, asked Grant) bool {
	switch asked := asked.(type) {
	case HTTP:
		allowed, ok := allowed.(HTTP)
		return ok && allowed.covers(asked)
	case Workspace:
		allowed, ok := allowed.(Workspace)
		return ok && allowed.Store == asked.Store && below(allowed.Path, asked.Path) && allowed.Access.covers(asked.Access)
	case Dir:
		allowed, ok := allowed.(Dir)
		return ok && allowed.Path == asked.Path && allowed.Access.covers(asked.Access)
	case nil:
		return false
	default:
		return reflect.DeepEqual(allowed, asked)
	}
}

// covers takes no account of what asked has to stay within, except where that is the same.
func (g HTTP) covers(asked HTTP) bool {
	for _, set := range g.Within {
		same := func(s []http.Rule) bool { return reflect.DeepEqual(s, set) }
		if !slices.ContainsFunc(asked.Within, same) && !http.Covers(set, asked.Rules) {
			return false
		}
	}
	return http.Covers(g.Rules, asked.Rules)
}

func (a Access) covers(asked Access) bool { return a == asked || a == ReadWrite && asked == Read }

// below reports whether a path is a directory or lies below it; both are absolute and clean.
func below(directory, path string) bool {
	return directory == "/" || path == directory || strings.HasPrefix(path, directory+"/")
}

// What says how the authority of a binding changes.
type What string

// The ways.
const (
	Added    What = "added"
	Removed  What = "removed"
	Widened  What = "widened"
	Narrowed What = "narrowed"
	// Changed is neither wider nor narrower, as far as [Covers] is sure.
	Changed What = "changed"
)

// Change is a binding that may do something else than before.
type Change struct {
	Binding string `json:"binding"`
	What    What   `json:"what"`
	// Before and After are the binding as in a manifest; null where there is none.
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
	// Lines say the difference to a person, one piece of authority a line, behind "- " or "+ ". They are printable.
	Lines []string `json:"lines"`
}

// String is the lines, such as "+ http POST https://api.github.com/repos/** with credential github-token".
func (c Change) String() string { return strings.Join(c.Lines, "\n") }

// Difference says what changes from one list of bindings to another, in byte order of their names. What is written in another
// way and may do the same is no change.
func Difference(before, after []Binding) []Change {
	var changes []Change
	for _, b := range Merge(before, after) {
		from, to := grantOf(before, b.Name), grantOf(after, b.Name)
		narrower, wider := from != nil && to != nil && covers(from, to), from != nil && to != nil && covers(to, from)
		what := Changed
		switch {
		case narrower && wider:
			continue
		case from == nil:
			what = Added
		case to == nil:
			what = Removed
		case wider:
			what = Widened
		case narrower:
			what = Narrowed
		}
		changes = append(changes, newChange(b.Name, what, from, to))
	}
	return changes
}

func grantOf(bindings []Binding, name string) Grant {
	if i := find(bindings, name); i >= 0 {
		return bindings[i].Grant
	}
	return nil
}

func newChange(name string, what What, before, after Grant) Change {
	from, to := authority(before), authority(after)
	c := Change{Binding: name, What: what, Before: document(before), After: document(after)}
	gone, come := without(from, to), without(to, from)
	if len(gone)+len(come) == 0 { // the order of rules matters too
		gone, come = from, to
	}
	for _, line := range gone {
		c.Lines = append(c.Lines, "- "+line)
	}
	for _, line := range come {
		c.Lines = append(c.Lines, "+ "+line)
	}
	return c
}

func document(g Grant) json.RawMessage {
	if g == nil {
		return nil
	}
	return bytes.Clone(encode(Binding{Grant: g}.document()))
}

// Harmless reports whether a binding reaches nothing beyond the call and its log: clock, random, console and blob.
func (b Binding) Harmless() bool {
	switch b.Grant.(type) {
	case Clock, Random, Console, Blob:
		return true
	default:
		return false
	}
}

// ParseRemedy reads the line of manifest that would allow what was denied, where it is one about the binding of this name.
func ParseRemedy(name, line string) (b Binding, ok bool) {
	m, err := Parse([]byte(`{"name": "x", "version": "1.0.0", "description": "x", "tools": ["x"], ` + line + `}`))
	if err != nil || len(m.Bindings) != 1 || m.Bindings[0].Name != name {
		return b, false
	}
	return m.Bindings[0], true
}

// ShortRemedy is [ParseRemedy]'s line in the short form, where permissions make a binding of this name that allows as much; a name
// is bound in one place, and most manifests bind these there. Otherwise it is line, and moves reports whether what permissions
// say of the name has to move into it.
func ShortRemedy(name, line string) (remedy string, moves bool) {
	b, ok := ParseRemedy(name, line)
	if !ok || !slices.Contains(permissionNames, name) {
		return line, false
	}
	var value any = true
	switch g := b.Grant.(type) {
	case HTTP:
		value = []string{g.Rules[0].Host}
	case Workspace:
		value = g.Access
	}
	short := fmt.Sprintf(`"permissions": { %q: %s }`, name, encode(value))
	if s, ok := ParseRemedy(name, short); ok && Covers([]Binding{s}, []Binding{b}) {
		return short, false
	}
	return line, true
}
