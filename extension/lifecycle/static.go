package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing/fstest"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/inspect"
	"github.com/stilehost/stile/extension/typecheck"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/sha256hex"
	"github.com/stilehost/stile/internal/sqlite"
	"github.com/stilehost/stile/toolchain"
	"github.com/stilehost/stile/toolchain/npm"
)

// withOthers adds to the problems of a stage what the checks that run nothing find beside them, so that an author gets everything at once.
func (b *build) withOthers(ctx context.Context, stage extension.Stage, err error) error {
	static := []extension.Stage{extension.StageValidate, extension.StageResolve, extension.StageBundle, extension.StageTypes}
	found, ok := errors.AsType[*extension.ProblemsError](Mendable(stage, err))
	if !ok || b.seen == nil || !slices.Contains(static, stage) || ctx.Err() != nil {
		return err
	}
	all := slices.Clone(found.Problems)
	add := func(more []extension.Problem) {
		for _, p := range more {
			if !slices.ContainsFunc(all, func(q extension.Problem) bool {
				return q.File == p.File && q.Line == p.Line && (q.Column == p.Column || p.Line == 0)
			}) {
				all = append(all, p)
			}
		}
	}
	unread := map[string]bool{} // files that the bundler does not understand: what the compiler says of them says the same
	if stage == extension.StageValidate {
		b.worked = true
		tree, entry := b.tree()
		if _, wrong := npm.Imports(ctx, tree, entry, b.options.Bundler); wrong != nil {
			if more, ok := errors.AsType[*extension.ProblemsError](Mendable(extension.StageBundle, wrong)); ok {
				add(more.Problems)
			}
		}
	}
	for _, p := range all {
		if p.File != extension.ManifestFile && p.Line > 0 && stage == extension.StageBundle {
			unread[p.File] = true
		}
	}
	if stage != extension.StageTypes && !b.draft.NoTypes && b.options.Types != nil {
		more, ok := errors.AsType[*extension.ProblemsError](b.checkTypes(ctx))
		if ok {
			add(slices.DeleteFunc(more.Problems, func(p extension.Problem) bool { return unread[p.File] && typecheck.IsSyntax(p) }))
		}
	}
	if more, wrong := b.faults(ctx); wrong == nil {
		add(more)
	}
	if ctx.Err() != nil {
		return err
	}
	return &extension.ProblemsError{Stage: found.Stage, Problems: all[:min(len(all), abi.MaxProblems)], Cause: found.Cause}
}

// tree is the author's tree with the module that was derived from the entry.
func (b *build) tree() (fs.FS, string) {
	if b.derived != nil {
		return b.derived.Tree(b.seen.Source()), b.derived.Entry
	}
	return b.seen.Source(), b.seen.Entry
}

// checkTypes checks the types of what is seen.
func (b *build) checkTypes(ctx context.Context) error {
	b.worked = true
	var progress func(message string)
	if working := b.draft.Working; working != nil {
		progress = func(message string) { working(extension.StageTypes, message) }
	}
	return b.options.Types.Check(ctx, typecheck.Request{
		Files: b.seen.Files, Entry: b.seen.Entry, Bindings: extension.Known(b.withDefaults(b.seen.Manifest.Bindings)), AnyBinding: !b.bound, Types: b.called.toolTypes(), Vars: extension.VarTypes(b.seen.Manifest.Vars),
		WIT: b.options.Host.WIT(), Progress: progress, Packages: b.source.FS, Dependencies: b.seen.Manifest.Dependencies,
		Warn: func(text string) { b.written.Untyped = append(b.written.Untyped, text) },
	})
}

// faults finds what the code can only fail at.
func (b *build) faults(ctx context.Context) ([]extension.Problem, error) {
	if !b.bound {
		return nil, nil
	}
	in := inspect.Input{Kinds: b.options.Kinds, FS: b.seen.Source(), Entry: b.seen.Entry, Bindings: b.seen.Manifest.Bindings, NodeFS: b.seen.Manifest.FS, Vars: len(b.seen.Manifest.Vars) > 0}
	return inspect.Faults(in, extension.Defaults(b.options.Kinds), func(names []string) (map[string]bool, error) { return b.exist(ctx, names) })
}

// exist asks the engine which names are globals. The names are in the code of the tool that asks, because the toolchain gives some globals only
// to code that names them.
func (m *Manager) exist(ctx context.Context, names []string) (map[string]bool, error) {
	var source strings.Builder
	source.WriteString("import { extension } from \"stile\";\nexport default extension({ tools: { exist: { description: \"Which globals exist\", run: () => ({\n")
	for _, name := range names {
		fmt.Fprintf(&source, "%s: typeof %[1]s !== \"undefined\",\n", name)
	}
	source.WriteString("}) } } });\n")
	tools, err := m.options.Toolchain(ctx)
	if err != nil {
		return nil, err
	}
	wasm, err := tools.Assemble(ctx, toolchain.Source{FS: fstest.MapFS{"exist.ts": {Data: []byte(source.String())}}, Entry: "exist.ts"}, false)
	if err != nil {
		return nil, fmt.Errorf("ask which globals exist: %w", err)
	}
	component, err := m.options.Host.Load(ctx, wasm)
	if err != nil {
		return nil, fmt.Errorf("ask which globals exist: %w", err)
	}
	result, err := component.Do(ctx, host.Request{Tool: "exist", Input: []byte("{}")})
	if err = errors.Join(err, component.Close()); err != nil {
		return nil, fmt.Errorf("ask which globals exist: %w", err)
	}
	there := map[string]bool{}
	err = json.Unmarshal(result.Output, &there)
	return there, err
}

// known reports whether the sources of the draft are those of a version that is active or waits already, so that its build is probably in the
// cache. The draft then gets the lockfile of that version, so that it has the same packages. It reads no sources: whoever is above the limit
// can ask as often as they like.
func (b *build) known(ctx context.Context) bool {
	named := struct{ Name string }{}
	if b.draft.Component != nil || json.Unmarshal(b.draft.Manifest, &named) != nil {
		return false
	}
	return b.among(ctx, named.Name, func(c *sqlite.Conn, found Release) (bool, error) {
		r, _, err := loadRecord(ctx, c, found.Digest)
		if err != nil || r.Manifest != sha256hex.Of(b.draft.Manifest) || b.draft.Entry != "" && b.draft.Entry != r.Entry ||
			!maps.EqualFunc(r.Files, b.draft.Files, func(digest string, data []byte) bool { return digest == sha256hex.Of(data) }) {
			return false, err
		}
		if b.draft.lock == nil && r.Lock != "" {
			b.draft.lock, err = object(ctx, c, r.Lock)
		}
		return err == nil, err
	})
}

// unchanged reports whether the version is active or waits already, in the scope of the draft. It is no build then: the components come from
// the cache.
func (b *build) unchanged(ctx context.Context) bool {
	return b.among(ctx, b.version.Manifest.Name, func(_ *sqlite.Conn, r Release) (bool, error) { return r.Digest == b.version.Digest, nil })
}

// among reports whether the version of a name that is active in the scope of the draft is the one, or else the version that waits there.
func (b *build) among(ctx context.Context, name string, is func(c *sqlite.Conn, r Release) (bool, error)) bool {
	same := false
	err := b.db.View(ctx, func(c *sqlite.Conn) error {
		for _, state := range []State{Active, Pending} {
			r, err := releaseIn(ctx, c, b.draft.Scope, name, state)
			if errors.As(err, new(*NotFoundError)) {
				continue
			} else if err != nil {
				return err
			}
			if same, err = is(c, r); same || err != nil {
				return err
			}
		}
		return nil
	})
	return err == nil && same
}

// resolveCallees finds out what the draft calls of other extensions, and what is wrong with that. A pack may come before the extensions that it
// calls: who approves it sees that there are none.
func (b *build) resolveCallees(ctx context.Context, manifest *extension.Manifest) ([]extension.Problem, error) {
	if err := b.Refresh(ctx); err != nil {
		return nil, err
	}
	b.called = b.resolveTools(b.draft.Scope, manifest, b.draft.Manifest)
	if b.draft.packed {
		return b.called.problems, nil
	}
	if err := b.sayWaiting(ctx, &b.called, b.draft.Scope, b.draft.Author); err != nil {
		return nil, err
	}
	return b.called.all(), nil
}
