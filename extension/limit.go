package extension

import (
	"reflect"
	"slices"

	"github.com/stilehost/stile/capabilities/http"
)

// Limit cuts what is asked for down to a ceiling. What it grants is covered by asked and by the ceiling together: a binding
// keeps what it may do under both, and is gone when that is nothing or when its directory is not in the ceiling's. cut says
// what was taken away, in byte order of the bindings' names. No ceiling cuts what is harmless. Stores are compared by name, so the bindings are those of a manifest before [Manifest.Own].
func Limit(ceiling, asked []Binding) (granted []Binding, cut []Change) {
	for _, b := range Merge(asked) {
		grant := b.Grant
		switch g := grant.(type) {
		case HTTP:
			grant = g.limit(ceiling)
		case Workspace:
			grant = g.limit(ceiling)
		default:
			if !b.Harmless() && !Covers(ceiling, []Binding{b}) {
				grant = nil
			}
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

// limit leaves rules out that the ceiling has nothing in common with, and keeps the rest within the ceiling.
func (g HTTP) limit(ceiling []Binding) Grant {
	var limits []http.Rule
	for _, c := range ceiling {
		if c, ok := c.Grant.(HTTP); ok {
			limits = append(limits, c.Rules...)
		}
	}
	rules, usable := http.Overlap(limits, g.Rules)
	limited := HTTP{Rules: rules, Within: g.Within}
	same := func(set []http.Rule) bool { return reflect.DeepEqual(set, limits) }
	switch {
	case !usable:
		return nil
	case !http.Covers(limits, limited.Rules) && !slices.ContainsFunc(g.Within, same):
		limited.Within = append(slices.Clip(g.Within), limits)
	}
	return limited
}

// limit takes the widest access of those directories of the ceiling in which this one lies.
func (g Workspace) limit(ceiling []Binding) Grant {
	read := Workspace{Store: g.Store, Path: g.Path, Access: Read}
	for _, grant := range []Workspace{g, read} {
		if Covers(ceiling, []Binding{{Grant: grant}}) {
			return grant
		}
	}
	return nil
}
