package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/host"
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
	remedy, ok := parseRemedy(name, line)
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

// parseRemedy reads the line of manifest that would allow what was denied, where it is one about this binding.
func parseRemedy(name, line string) (b extension.Binding, ok bool) {
	m, err := extension.Parse([]byte(`{"name": "x", "version": "1.0.0", "description": "x", "tools": ["x"], ` + line + `}`))
	if err != nil || len(m.Bindings) != 1 || m.Bindings[0].Name != name {
		return b, false
	}
	return m.Bindings[0], true
}

// ceilingError is a call that was denied what the manifest asks for, and the ceiling of policy.json takes.
type ceilingError struct {
	error
	cut extension.Change
}

func (e *ceilingError) Unwrap() error { return e.error }

// ceiling finds out whether it was the ceiling that denied err.
func (e *extensions) ceiling(ctx context.Context, v lifecycle.Viewer, tool string, err error) error {
	denied, ok := errors.AsType[*host.DeniedError](err)
	if !ok {
		return err
	}
	tools := e.Tools(v)
	i := slices.IndexFunc(tools, func(t lifecycle.Tool) bool { return t.Name == tool })
	if i < 0 {
		return err
	}
	version, unreadable := e.Version(ctx, tools[i].Digest)
	if unreadable != nil {
		return err // which says more
	}
	asked := version.Manifest.Bindings
	_, cuts := e.Policy().Limit(asked)
	for _, cut := range cuts {
		remedy, ok := parseRemedy(cut.Binding, denied.Denial.Remedy)
		of := slices.IndexFunc(asked, func(b extension.Binding) bool { return b.Name == cut.Binding })
		if ok && of >= 0 && extension.Covers(asked[of:of+1], []extension.Binding{remedy}) {
			return &ceilingError{err, cut}
		}
	}
	return err
}

// bindFlag quotes for a shell: a guest chose part of the text, and a person may paste it.
func bindFlag(spec string) string { return "--bind '" + strings.ReplaceAll(spec, "'", `'\''`) + "'" }
