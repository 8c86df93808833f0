package main

import (
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/extension"
)

// boundError is the error of a call, with the bindings of its command line.
type boundError struct {
	error
	specs []string
}

func (e *boundError) Unwrap() error { return e.error }

// remedy is the binding that would allow what was denied; empty where there is none, or the command line did not bind the name.
func (e *boundError) remedy(d abi.Denial) string {
	for _, spec := range e.specs {
		b, err := extension.ParseSpec(spec)
		if err != nil || b.Name != d.Binding {
			continue
		}
		switch g := b.Grant.(type) {
		case extension.Workspace:
			if g.Access == extension.Read && d.Reason == readOnlyReason {
				return spec + ",rw"
			}
		case extension.Dir:
			if g.Access == extension.Read && d.Reason == readOnlyReason {
				return spec + ",rw"
			}
		case extension.HTTP:
			return e.ruleSpec(b.Name, d.Remedy)
		}
		return ""
	}
	return ""
}

// readOnlyReason is what a workspace and a directory say. Not every such denial has a line of manifest.
const readOnlyReason = "this handle can only read"

// ruleSpec makes a binding of the line of manifest that would allow a request, with the addresses that the command line gave
// the same host.
func (e *boundError) ruleSpec(name, line string) string {
	remedy, ok := extension.ParseRemedy(name, line)
	if !ok {
		return ""
	}
	asked, ok := remedy.Grant.(extension.HTTP)
	if !ok || len(asked.Rules) != 1 {
		return ""
	}
	for _, given := range e.specs {
		b, err := extension.ParseSpec(given)
		if g, ok := b.Grant.(extension.HTTP); err == nil && ok && b.Name == name && g.Rules[0].Host == asked.Rules[0].Host {
			asked.Rules[0].Addresses = g.Rules[0].Addresses
		}
	}
	spec := name + "=http:" + asked.Rules[0].String()
	if _, err := extension.ParseSpec(spec); err != nil || abi.Printable(spec) != spec {
		return ""
	}
	return spec
}

// bindFlag quotes for a shell: a guest chose part of the text, and a person may paste it.
func bindFlag(spec string) string { return "--bind '" + strings.ReplaceAll(spec, "'", `'\''`) + "'" }
