package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/internal/printable"
)

// A manifest that a person runs from a file was approved by nobody. It may ask for powers, and it names nothing that the person has: its
// stores depend on its path, and secrets are for --bind.

// ownRun returns the manifest's bindings with the stores of its file. The path is the one that the person gave. Links are not followed, or one
// of a stranger's could lead to the stores of another manifest.
func ownRun(m *extension.Manifest, file string) ([]extension.Binding, error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	return m.OwnRun(abs), nil
}

// given reports whether the command line binds the name.
func (c *callFlags) given(name string) bool {
	return slices.ContainsFunc(c.Bind, func(spec string) bool { return strings.HasPrefix(spec, name+"=") })
}

// namesNoSecret refuses bindings of the manifest that name secrets.
func (c *callFlags) namesNoSecret(bindings []extension.Binding) error {
	for _, b := range bindings {
		if !c.given(b.Name) {
			if err := secretsOf(manifestFile(c.Manifest), b.Name, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// secretsOf is the error for a binding of a manifest that names secrets, with the flags that allow it. name is that of the binding on the command
// line.
func secretsOf(file, name string, b extension.Binding) error {
	g, ok := b.Grant.(capability.SecretUser)
	if !ok || len(g.Secrets()) == 0 {
		return nil
	}
	noun := "secret"
	if len(g.Secrets()) > 1 {
		noun = "secrets"
	}
	lines := []string{fmt.Sprintf("%s: the binding %s uses the %s %s. Nobody has approved this manifest, so only the command line gives it a secret:",
		printable.Text(file), name, noun, strings.Join(g.Secrets(), ", "))}
	for _, spec := range g.Specs() {
		if !strings.HasPrefix(spec, ",") {
			spec = ":" + spec
		}
		lines = append(lines, flagOf("bind", printable.Line(name+"="+g.Kind().Name+spec)))
	}
	return usagef("%s", strings.Join(lines, "\n    "))
}

// places tells a person which store of their own a manifest would not get, and returns what tells them, after the call, where a first call has
// kept something.
func (c *callFlags) places(ctx context.Context, s *streams, state *extension.State, bindings []extension.Binding) (kept func(context.Context), err error) {
	empty := map[string]capability.Holder{}
	for _, b := range bindings {
		own, ok := b.Grant.(capability.Holder)
		if !ok || c.Manifest == "" || c.given(b.Name) {
			continue
		}
		store, has, err := own.Holds(ctx, state.Site)
		if err != nil {
			return nil, err
		}
		if has {
			continue
		}
		empty[store] = own
		name := store[strings.LastIndexByte(store, '.')+1:]
		mine, ok := own.Own(name, b.Name).(capability.Holder)
		if !ok {
			continue
		}
		spec := b.Name + "=" + mine.Spec()
		if _, has, err = mine.Holds(ctx, state.Site); err != nil {
			return nil, err
		}
		if _, wrong := extension.ParseSpec(capabilities.Builtin, spec); has && wrong == nil {
			s.say("stile: the manifest does not get your %s %s. To give it, add %s", own.Kind().Name, name, flagOf("bind", spec))
		}
	}
	return func(ctx context.Context) {
		for store, own := range empty {
			if _, has, err := own.Holds(ctx, state.Site); has && err == nil {
				s.say("stile: files are kept in the %s %s; stile ws ls %[2]s lists them", own.Kind().Name, store)
			}
		}
	}, nil
}
