package extension

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/stilehost/stile/capability"
)

// Covers reports whether allowed permits everything that asked may do. A yes is certain, so a person's approval may rely on
// it. If in doubt, for example about very many or very long rules, it returns no. Names do not matter: one binding of allowed
// must cover each binding of asked. Stores are compared by name, so compare the bindings of two manifests before
// [Manifest.Own].
func Covers(allowed, asked []Binding) bool {
	return capability.CoversAll(grants(allowed), grants(asked))
}

// Rules returns how many rules the bindings have. Only some kinds have rules.
func Rules(bindings []Binding) int {
	rules, _ := capability.SizeOf(grants(bindings))
	return rules
}

// What is the way in which the authority of a binding changes.
type What string

// The ways in which authority changes.
const (
	Added    What = "added"
	Removed  What = "removed"
	Widened  What = "widened"
	Narrowed What = "narrowed"
	// Changed is neither wider nor narrower, as far as [Covers] can tell.
	Changed What = "changed"
)

// Change is a binding whose authority changed.
type Change struct {
	Binding string `json:"binding"`
	What    What   `json:"what"`
	// Before and After are the binding in the form of a manifest, or null.
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
	// Lines describe the difference for a person: one piece of authority a line, after "- " or "+ ". They are printable.
	Lines []string `json:"lines"`
}

// String returns the lines, such as "+ http POST https://api.github.com/repos/** with credential github-token".
func (c Change) String() string { return strings.Join(c.Lines, "\n") }

// Difference returns the changes from one list of bindings to another, in byte order of their names. A different spelling of the
// same authority does not count.
func Difference(before, after []Binding) []Change {
	var changes []Change
	for _, b := range Merge(before, after) {
		from, to := grantOf(before, b.Name), grantOf(after, b.Name)
		narrower, wider := capability.Covers(from, to), capability.Covers(to, from)
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

func grantOf(bindings []Binding, name string) capability.Grant {
	if i := find(bindings, name); i >= 0 {
		return bindings[i].Grant
	}
	return nil
}

func authority(g capability.Grant) []string {
	if g == nil {
		return nil
	}
	return g.Authority()
}

func newChange(name string, what What, before, after capability.Grant) Change {
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

func document(g capability.Grant) json.RawMessage {
	if g == nil {
		return nil
	}
	return capability.JSON(Binding{Grant: g}.document())
}

// ParseRemedy reads the line of manifest that would allow a denied operation, if it is about the binding of this name.
func ParseRemedy(kinds capability.Set, name, line string) (b Binding, ok bool) {
	m, err := ParseWith(kinds, []byte(`{"name": "x", "version": "1.0.0", "description": "x", "tools": ["x"], `+line+`}`))
	if err != nil || len(m.Bindings) != 1 || m.Bindings[0].Name != name {
		return b, false
	}
	return m.Bindings[0], true
}

// ShortRemedy returns [ParseRemedy]'s line in the short form, if permissions make a binding of this name that allows as much. Most
// manifests bind these names there, and a name is bound in one place. Otherwise it returns line, and moves reports whether the entry
// for the name in permissions must move into it.
func ShortRemedy(kinds capability.Set, name, line string) (remedy string, moves bool) {
	b, ok := ParseRemedy(kinds, name, line)
	if !ok || !slices.Contains(kinds.Permissions(), name) {
		return line, false
	}
	var value any = true
	if g, ok := b.Grant.(capability.Shortener); ok {
		value = g.Short()
	}
	short := fmt.Sprintf(`"permissions": { %q: %s }`, name, capability.JSON(value))
	if s, ok := ParseRemedy(kinds, name, short); ok && Covers([]Binding{s}, []Binding{b}) {
		return short, false
	}
	return line, true
}

// Limit reduces a request to a ceiling. Both asked and the ceiling cover the result: a binding keeps what both allow, and disappears
// if that is nothing, or if its directory is not in the ceiling's. cut says what was removed, in byte order of the bindings' names.
// No ceiling cuts harmless bindings. Stores are compared by name, so pass the bindings of a manifest before [Manifest.Own].
func Limit(ceiling, asked []Binding) (granted []Binding, cut []Change) {
	for _, b := range Merge(asked) {
		grant := b.Grant
		if g, ok := grant.(capability.Limiter); ok {
			grant = g.Limit(grants(ceiling))
		} else if !b.Harmless() && !Covers(ceiling, []Binding{b}) {
			grant = nil
		}
		if grant == nil {
			cut = append(cut, newChange(b.Name, Removed, b.Grant, nil))
			continue
		}
		granted = append(granted, Binding{b.Name, grant})
		if !reflect.DeepEqual(grant, b.Grant) {
			cut = append(cut, newChange(b.Name, Narrowed, b.Grant, grant))
		}
	}
	return granted, cut
}
