package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/printable"
)

// toolbox offers the tools of extensions as "<extension>_<tool>". They have the default bindings, those that the command line gives them and
// those that callers pass on. If a manifest is named, they also have what it asks for, as with --manifest.
func (n *session) toolbox(ctx context.Context, s *streams, state *extension.State, given tools.Rights) (*tools.Toolbox, error) {
	callees := map[string]tools.Func{}
	var found []tools.Description
	for _, file := range given.Files {
		c, err := n.callee(file, given)
		if err != nil {
			return nil, err
		}
		component, _, err := n.load(ctx, c.source, c.wants)
		if err != nil {
			return nil, err
		}
		definitions, err := component.Tools(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if c.manifest != nil {
			if err := checkTools(c.manifest, file, names(definitions)); err != nil {
				return nil, err
			}
		}
		env, err := state.Env(ctx, c.bindings)
		if err != nil {
			return nil, err
		}
		if c.unasked != "" {
			files := slices.Clone(given.Files)
			files[slices.Index(files, file)] = c.unasked
			s.say("stile: the tools of %s get no bindings of %s. To bind what it asks for, write %s", line(file, 200), line(c.unasked, 200), flagOf("bind", given.Name+"=tools:"+printable.Line(strings.Join(files, ","))))
		}
		for _, d := range definitions {
			name := extension.ToolName(c.name, d.Name)
			if callees[name] != nil {
				return nil, usagef("%s: there is another tool %s", file, name)
			}
			callees[name] = host.Callee{Component: component, Tool: d.Name, Env: env, Vars: c.vars, WASI: c.wasi}.Start
			found = append(found, tools.Description{Name: name, Description: d.Description, InputSchema: d.InputSchema})
		}
	}
	return tools.New(tools.Options{
		Resolve: func(name string) (tools.Func, error) {
			if call := callees[name]; call != nil {
				return call, nil
			}
			var names []string
			for _, d := range found {
				names = append(names, d.Name)
			}
			return nil, abi.Errorf(abi.CodeNotFound, "tool %q; there are: %s", printable.Short(name, 64), strings.Join(names, ", "))
		},
		Finder: tools.NewCatalog(found),
	})
}

// callee is an extension whose tools a command line names by a file.
type callee struct {
	name, source string
	manifest     *extension.Manifest // nil unless the file is it
	unasked      string              // a manifest beside the file, which was not named, and asks for what the tools lack
	bindings     []extension.Binding
	wants        wants
	vars         []byte
	wasi         abi.WASI
}

// callee reads what there is to know of a file before its code is loaded. A manifest beside it gives the name, and only one that is the file gives
// bindings.
func (n *session) callee(file string, given tools.Rights) (c callee, err error) {
	var inner []extension.Binding
	for name, grant := range given.Inner {
		inner = append(inner, extension.Binding{Name: name, Grant: grant})
	}
	defaults := extension.Defaults(capabilities.Builtin)
	if filepath.Ext(file) != ".json" {
		c.source, c.name, c.bindings = entryOf(file), extensionName(file), extension.Merge(inner, defaults)
		beside := manifestBeside(c.source)
		if beside == "" {
			return c, nil
		}
		m, err := readManifest(beside)
		if err != nil {
			return c, nil //nolint:nilerr // it was not named
		}
		c.name = m.Name
		if slices.ContainsFunc(m.Bindings, func(asked extension.Binding) bool {
			return !slices.ContainsFunc(c.bindings, func(b extension.Binding) bool { return b.Name == asked.Name })
		}) {
			c.unasked = beside
		}
		return c, nil
	}
	if c.manifest, err = readManifest(file); err != nil {
		return c, err
	}
	m := c.manifest
	if c.source, err = sourceOf(file); err != nil {
		return c, err
	}
	own, err := ownRun(m, file)
	if err != nil {
		return c, err
	}
	for _, b := range own {
		if given.Inner[b.Name] != nil {
			continue
		}
		name := given.Name + "." + b.Name
		if _, ok := b.Grant.(capability.ToolCaller); ok {
			return c, storedTools(name)
		}
		if err := secretsOf(file, name, b); err != nil {
			return c, err
		}
	}
	c.name, c.bindings = m.Name, extension.Merge(inner, own, defaults)
	c.vars, c.wasi = extension.VarsText(m.Configure(nil)), m.WASI
	c.wants = wants{manifest: file, files: m.FS, bindings: extension.Known(c.bindings)}
	return c, nil
}

// storedTools is the error for a binding of a manifest to tools of others that the command line says nothing of.
func storedTools(name string) error {
	return usagef("the binding %s names tools of stored extensions; say where they are here, with --bind %[1]s=tools:FILE, where FILE is a source, or a manifest whose bindings the tools get", name)
}

// manifestBeside returns the manifest beside a source, or nothing.
func manifestBeside(source string) string {
	if name := firstOf(filepath.Dir(source), manifestsOf(filepath.Base(source))); name != "" {
		return filepath.Join(filepath.Dir(source), name)
	}
	return ""
}

// sourceOf returns the source or component that a manifest is beside: NAME.ts for NAME.json, or what a folder with a manifest.json has.
func sourceOf(manifest string) (string, error) {
	folder, base := filepath.Split(manifest)
	if base != extension.ManifestFile {
		stem := strings.TrimSuffix(base, filepath.Ext(base))
		var looked []string
		for _, ending := range append(slices.Clone(lifecycle.EntryEndings()), ".wasm") {
			looked = append(looked, stem+ending)
		}
		if name := firstOf(cmp.Or(folder, "."), looked); name != "" {
			return folder + name, nil
		}
		return "", usagef("%s is a manifest, and beside it is no %s", line(manifest, 200), strings.Join(looked, " and no "))
	}
	if folder = cmp.Or(folder, "."); entryOf(folder) == folder {
		return "", usagef("%s is a manifest, and it is unclear which file beside it exports the tools; name a manifest NAME.json beside NAME.ts", line(manifest, 200))
	}
	return entryOf(folder), nil
}

// notInNames matches what the name of an extension replaces in the name of its file.
var notInNames = lazyregexp.New(`[^a-z0-9]+`)

func extensionName(file string) string {
	base := filepath.Base(file)
	if abs, err := filepath.Abs(file); err == nil {
		base = filepath.Base(abs) // of "." too
	}
	return notInNames.ReplaceAllString(strings.ToLower(strings.TrimSuffix(base, filepath.Ext(base))), "_")
}
