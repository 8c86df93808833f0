package main

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/toolchain/npm"
)

// componentFile is the name by which stile ext source knows the component of a version without source.
const componentFile = "component.wasm"

type extSource struct {
	chosenVersion
	File string `arg:"" optional:"" help:"File to print. Default: the only one. If there are several, stile lists their names."`
	JSON bool   `name:"json" help:"List the files as JSON. A named file is printed unchanged."`
}

// Help implements kong.HelpProvider.
func (*extSource) Help() string {
	return `The files include manifest.json and, if the version has npm packages, the package-lock.json that pins them. A component that came without source has the file component.wasm in place of a source.

Examples:

    stile ext source github
    stile ext source github src/issues.ts
    stile ext source 12 manifest.json
    stile ext source github package-lock.json
    stile ext source github tool.ts --digest 3f2a91
    stile ext source notes component.wasm > notes.wasm`
}

// Run implements the command.
func (c *extSource) Run(ctx context.Context, s *streams) error {
	return withExtensions(ctx, s, func(e *extensions) error {
		v, err := c.version(ctx, e)
		if err != nil {
			return err
		}
		files := maps.Clone(v.Files)
		names := slices.Sorted(maps.Keys(files))
		if !v.HasSource() {
			wasm, err := e.ComponentBytes(ctx, v.Digest)
			if err != nil {
				return err
			}
			files = map[string][]byte{componentFile: wasm}
			if c.File == "" {
				s.say("stile: %s has no source to read; its component is the version: stile ext source %[1]s %s > FILE", line(v.Manifest.Name, 64), componentFile)
			}
		}
		if c.File == "" && len(names) == 1 && !c.JSON {
			c.File = names[0]
		}
		files[extension.ManifestFile] = v.ManifestText()
		if len(v.Lock) > 0 { // this lockfile counts even if the source contains another
			files[npm.LockFile] = v.Lock
		}
		switch names = slices.Sorted(maps.Keys(files)); {
		case c.File == "" && c.JSON:
			return printJSON(s.out, map[string]any{"digest": v.Digest, "source": v.HasSource(), "files": names})
		case c.File == "":
			return s.lines(names)
		}
		data, ok := files[c.File]
		if !ok {
			return usagef("%s has no file %s", c.Name, line(c.File, 200))
		}
		if _, ok := terminal(s.out); ok {
			if !utf8.Valid(data) {
				return usagef("%s is not text; redirect it into a file", line(c.File, 200))
			}
			data = []byte(printable.Text(string(data)))
		}
		_, err = s.out.Write(data)
		return err
	})
}

type extDiff struct {
	Name string `arg:"" complete:"extension" help:"Name of the extension, or number of a request."`
	scopeFlag
	From string `placeholder:"DIGEST" help:"Version to compare with. Default: the active one, or the one before it when --to is the active one."`
	To   string `placeholder:"DIGEST" help:"Version to look at. Default: the one that waits for approval, otherwise the active one."`
	asJSON
}

// Help implements kong.HelpProvider.
func (*extDiff) Help() string {
	return `The comparison covers authority, manifest, source and packages. Lines of authority begin with "+" if they are new and "-" if they are gone.

Examples:

    stile ext diff github
    stile ext diff 12
    stile ext diff github --from 3f2a91 --to 90bb12`
}

// Run implements the command.
func (c *extDiff) Run(ctx context.Context, s *streams) error {
	return withExtensions(ctx, s, func(e *extensions) error {
		before, after, err := c.versions(ctx, e)
		if err != nil {
			return err
		}
		var was []extension.Binding
		var lasted []extension.Durable
		from := ""
		if before != nil {
			lasted = before.Manifest.Durable
			was, from = before.Manifest.Bindings, before.Digest
		}
		changes := append(extension.Difference(was, after.Manifest.Bindings), extension.DurableDifference(lasted, after.Manifest.Durable)...)
		code := lifecycle.Diff(before, after)
		if c.JSON {
			return printJSON(s.out, struct {
				From    string             `json:"from,omitempty"`
				To      string             `json:"to"`
				Changes []extension.Change `json:"changes"`
				Code    string             `json:"code"`
			}{from, after.Digest, append([]extension.Change{}, changes...), code})
		}
		if before != nil {
			s.say("stile: from %s (%s) to %s (%s)", before.Manifest.Version, lifecycle.ShortDigest(before.Digest), after.Manifest.Version, lifecycle.ShortDigest(after.Digest))
		}
		authority := changesText(changes)
		if authority == "" {
			authority = "    the same\n"
		}
		text := strings.TrimPrefix(section("Authority", authority), "\n") + section("Code", indented(code))
		if s.colored(s.out) {
			text = tint(text, diffMarks, true)
		}
		_, err = io.WriteString(s.out, text)
		return err
	})
}

func (c *extDiff) versions(ctx context.Context, e *extensions) (before, after *lifecycle.Version, err error) {
	r, err := chosen{c.Name, c.scopeFlag}.release(ctx, e)
	if err != nil {
		return nil, nil, err
	}
	all, err := e.History(ctx, r.Scope, r.Name)
	if err != nil {
		return nil, nil, err
	}
	to, from := c.To, c.From
	for _, one := range all {
		switch {
		case one.State == lifecycle.Pending && to == "" && r.State == lifecycle.Active:
			r = one
		case one.State == lifecycle.Active && from == "":
			from = one.Digest
		}
	}
	if to == "" {
		to = r.Digest
	}
	if c.From == "" && from == to { // nothing is newer than the active version
		older, _ := e.Earlier(ctx, r.Scope, r.Name, "")
		from = older.Digest
	}
	named := chosenVersion{chosen: chosen{c.Name, c.scopeFlag}, Digest: to}
	if after, err = named.version(ctx, e); err != nil || from == "" {
		return nil, after, err
	}
	named.Digest = from
	before, err = named.version(ctx, e)
	return before, after, err
}
