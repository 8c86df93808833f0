package main

import (
	"slices"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/extension"
)

// callError is the error of a call whose limits the command line sets.
type callError struct{ error }

func (e *callError) Unwrap() error { return e.error }

// boundError is the error of a call, with the bindings of its command line.
type boundError struct {
	error
	specs []string
	file  string // the source that a manifest could be beside; empty if the call has one
	bare  bool   // the call has no manifest, and the tools of extensions that it calls have their own
}

func (e *boundError) Unwrap() error { return e.error }

// remedy returns the binding that would allow what was denied. It is empty if there is none, or if the command line did not bind the
// name.
func (e *boundError) remedy(d abi.Denial) string {
	all, err := extension.ParseSpecs(capabilities.Builtin, e.specs)
	if err != nil {
		return ""
	}
	for _, spec := range e.specs {
		name, _, _ := strings.Cut(spec, "=")
		i := slices.IndexFunc(all, func(b extension.Binding) bool { return b.Name == name })
		if name != d.Binding || i < 0 {
			continue
		}
		g, ok := all[i].Grant.(capability.Remedier)
		if !ok {
			return ""
		}
		var wanted capability.Grant
		switch w := d.Wants.(type) {
		case capability.Wanted:
			wanted = w.Grant
		case capability.Operators:
			wanted = w.Grant
		}
		remedy := g.Remedy(spec, wanted)
		if _, err := extension.ParseSpec(capabilities.Builtin, remedy); err != nil {
			return ""
		}
		return remedy
	}
	return ""
}

// binds reports whether the command line binds the name.
func (e *boundError) binds(name string) bool {
	return slices.ContainsFunc(e.specs, func(spec string) bool { return strings.HasPrefix(spec, name+"=") })
}

// flagOf writes a flag. It quotes the value for a shell, because a guest chose part of the text and a person may paste it.
func flagOf(name, value string) string {
	return "--" + name + " '" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}
