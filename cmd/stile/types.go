package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/toolchain"
	"github.com/stilehost/stile/wit"
)

type typesCommand struct {
	Manifests []string `arg:"" name:"manifest" help:"Manifests of the extensions that the types are for, or folders with them."`
	Output    string   `short:"o" placeholder:"FILE" help:"File to write, or - for stdout. Default: stile-env.d.ts beside the first manifest."`
	witFlag
	scopeFlag
	NoDefaults bool `help:"Leave out console, clock and random, for a program that embeds Stile and binds none of them."`
	JSON       bool `name:"json" help:"Print the name of the file as JSON."`
}

// Help implements kong.HelpProvider.
func (*typesCommand) Help() string {
	return `The file gives env its type: one field for each binding, and console, clock and random, which tools have without asking. Include it in the extension's tsconfig.json. If a folder has several extensions, name all their manifests: the file then has the bindings of all. The command replaces only files that it wrote itself, for manifests that you name again. The tools in bindings of the kind tools are those that an extension of the scope finds.

Examples:

    stile types notes.json
    stile types notes.json schedule.json
    stile types ./github
    stile types crm.json --wit contacts.wit -o types/env.d.ts
    stile types crm.json --wit contacts.wit --no-defaults`
}

// Run implements the command.
func (c *typesCommand) Run(ctx context.Context, s *streams) error {
	for i, name := range c.Manifests {
		c.Manifests[i] = manifestFile(name)
	}
	interfaces, vars, callers, err := c.bindings()
	if err != nil {
		return err
	}
	handles, err := c.tools(ctx, s, callers)
	if err != nil {
		return err
	}
	known, err := c.embedded()
	if err != nil {
		return err
	}
	output := c.Output
	if output == "" {
		output = filepath.Join(filepath.Dir(c.Manifests[0]), "stile-env.d.ts")
	}
	of := namesFrom(output, c.Manifests)
	_, types, _ := strings.Cut(toolchain.EnvTypes(interfaces, handles, extension.VarTypes(vars), known), "\n")
	types = typesHead(of) + types
	if output == "-" {
		_, err = io.WriteString(s.out, types)
		return err
	}
	if err := replaceable(output, of); err != nil {
		return err
	}
	if err := writeFile(output, []byte(types)); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(s.out, map[string]string{"file": output})
	}
	_, err = fmt.Fprintln(s.out, output)
	return err
}

// callerOfTools is a manifest that names tools of others, as it was read.
type callerOfTools struct {
	manifest *extension.Manifest
	file     string
	text     []byte
}

// tools returns the types of the bindings to other tools.
func (c *typesCommand) tools(ctx context.Context, s *streams, callers []callerOfTools) (types map[string]string, err error) {
	if len(callers) == 0 {
		return nil, nil // the store of extensions is not needed
	}
	types = map[string]string{}
	err = c.inScope(ctx, s, func(e *extensions, scope extension.Scope) error {
		for _, m := range callers {
			found, err := e.ToolTypes(ctx, scope, m.manifest, m.text)
			if err != nil {
				return nameManifest(err, m.file)
			}
			for name, text := range found {
				if before, ok := types[name]; ok && before != text {
					return usagef("%s has another binding %s to tools than a manifest before it; rename one, or write a file for each manifest with -o", line(m.file, 200), name)
				}
				types[name] = text
			}
		}
		return nil
	})
	return types, err
}

// bindings returns the interfaces of the bindings of all manifests and of the defaults, by name, and the manifests' vars. callers are the manifests that name tools of others.
func (c *typesCommand) bindings() (all map[string]string, vars []extension.Var, callers []callerOfTools, err error) {
	all = map[string]string{}
	from := map[string]string{}
	for _, file := range c.Manifests {
		m, text, err := readManifestText(file)
		if err != nil {
			return nil, nil, nil, err
		}
		if slices.ContainsFunc(m.Bindings, func(b extension.Binding) bool { _, ok := b.Grant.(capability.ToolCaller); return ok }) {
			callers = append(callers, callerOfTools{m, file, text})
		}
		for _, v := range m.Vars {
			if at := slices.IndexFunc(vars, func(other extension.Var) bool { return other.Name == v.Name }); at < 0 {
				vars = append(vars, v)
			} else if before := vars[at]; before.TypeScript() != v.TypeScript() || (before.Default == nil) != (v.Default == nil) {
				return nil, nil, nil, usagef("%s has another var %s than a manifest before it; write a file for each manifest with -o", line(file, 200), v.Name)
			}
		}
		for name, of := range extension.Known(m.Bindings) {
			if before, ok := all[name]; ok && before != of {
				return nil, nil, nil, usagef("%s binds %s to %s, and %s to %s; rename one, or write a file for each manifest with -o", line(from[name], 200), name, before, line(file, 200), of)
			}
			all[name], from[name] = of, file
		}
	}
	if !c.NoDefaults { // as in the check of stile ext add
		for name, of := range extension.Known(extension.Defaults(capabilities.Builtin)) {
			if _, ok := all[name]; !ok {
				all[name] = of
			}
		}
	}
	return all, vars, callers, nil
}

// namesFrom returns the paths of the manifests relative to the folder of a file, sorted.
func namesFrom(output string, manifests []string) []string {
	folder := "."
	if output != "-" {
		folder = filepath.Dir(output)
	}
	var names []string
	for _, m := range manifests {
		name, err := relative(folder, m)
		if err != nil {
			name = m
		}
		names = append(names, filepath.ToSlash(name))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func relative(folder, file string) (string, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	file, err = filepath.Abs(file)
	if err != nil {
		return "", err
	}
	return filepath.Rel(folder, file)
}

const typesOf = toolchain.EnvTypesMark + ": the bindings of "

// typesHead returns the first line of a file. It names the manifests as JSON strings.
func typesHead(manifests []string) string {
	var quoted []string
	for _, m := range manifests {
		text, _ := json.Marshal(m) // a string can always be written
		quoted = append(quoted, string(text))
	}
	return typesOf + strings.Join(quoted, ", ") + ".\n"
}

// maxTypesHead is how many bytes of a file are read to find its first line.
const maxTypesHead = 64 << 10

// replaceable refuses a file that this command did not write, or wrote for a manifest that is not named now.
func replaceable(name string, manifests []string) error {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return nil // writing it reports any error
	}
	f, err := openFile(name)
	if err != nil {
		return err
	}
	start, err := io.ReadAll(io.LimitReader(f, maxTypesHead))
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(start), "\n")
	if !strings.HasPrefix(first, toolchain.EnvTypesMark) {
		return usagef("%s was not changed, because stile types did not write it; remove it, or name another file with -o", line(name, 200))
	}
	var before []string
	list, named := strings.CutPrefix(first, typesOf)
	if !named || json.Unmarshal([]byte("["+strings.TrimSuffix(strings.TrimSuffix(list, "\r"), ".")+"]"), &before) != nil {
		return usagef("%s was not changed, because its first line does not say which manifests it is for; remove it, or name another file with -o", line(name, 200))
	}
	before = slices.DeleteFunc(before, func(m string) bool { return slices.Contains(manifests, m) })
	if len(before) > 0 {
		return usagef("%s was not changed, because it also has the types of %s; name all manifests, remove the file, or name another one with -o", line(name, 200), line(strings.Join(before, ", "), 500))
	}
	return nil
}

// embedded returns the interfaces of --wit, or nil.
func (c *typesCommand) embedded() (*abi.Resolve, error) {
	texts, err := c.read()
	if err != nil || len(texts) == 0 {
		return nil, err
	}
	known, err := abi.ParseCapability(append([]string{wit.Capability()}, texts...)...)
	if err != nil {
		return nil, usagef("--wit: %w", err)
	}
	return known, nil
}
