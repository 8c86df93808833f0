package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing/fstest"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/inspect"
	"github.com/stilehost/stile/extension/policy"
	"github.com/stilehost/stile/extension/trial"
	"github.com/stilehost/stile/extension/typecheck"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/sha256hex"
	"github.com/stilehost/stile/internal/sqlite"
	"github.com/stilehost/stile/toolchain"
)

// withOthers adds to the problems of a stage what later stages find beside them, so that an author gets everything at once. It leaves out what
// may only follow from a problem that is known: tests run only if all problems are in the manifest.
func (b *build) withOthers(ctx context.Context, stage extension.Stage, err error) error {
	found, ok := errors.AsType[*extension.ProblemsError](Mendable(stage, err))
	if !ok || b.seen == nil || ctx.Err() != nil {
		return err
	}
	stages := extension.Stages(true)
	later := stages[slices.Index(stages, stage)+1:]
	all := gathered(slices.Clone(found.Problems))
	if slices.Contains(later, extension.StageResolve) {
		b.worked = true
		all.add(b.resolve(ctx))
	}
	if slices.Contains(later, extension.StageTypes) && !b.draft.NoTypes {
		all.addTypes(b.types(ctx))
	}
	if slices.Contains(later, extension.StageReport) {
		if more, wrong := b.faults(ctx); wrong == nil {
			all.put(more)
		}
	}
	if slices.Contains(later, extension.StageBundle) && b.source.FS != nil {
		unknown := b.unknownInterfaces()
		all.put(unknown)
		maps.DeleteFunc(b.source.Bindings, func(_, of string) bool { return b.options.Host.WIT().Interface(of) == nil })
		all.follow(b.make(ctx), b.source.Absent || len(unknown) > 0)
	}
	if slices.Contains(later, extension.StageImage) && b.source.FS != nil {
		if b.wasm == nil && !b.source.Absent { // top-level code threw, perhaps for what extension() refuses
			b.source.Absent, b.source.Found = true, nil
			_ = b.make(ctx) // what it throws then says no more
		}
		if b.wasm != nil {
			all.add(b.outline(ctx))
		}
	}
	if slices.Contains(later, extension.StageTest) {
		all.add(b.testsBeside(ctx, all))
	}
	if !b.draft.tried {
		all.add(forbidden(b.policy.Load().Decide(policy.Request{Scope: b.draft.Scope, Author: b.author, Asked: b.called.bindings})))
	}
	if ctx.Err() != nil {
		return err
	}
	return &extension.ProblemsError{Stage: found.Stage, Problems: all[:min(len(all), abi.MaxProblems)], Cause: found.Cause}
}

// gathered are the problems of several stages.
type gathered []extension.Problem

// add adds the problems of a stage, if its error has any.
func (g *gathered) add(err error) {
	if more, ok := errors.AsType[*extension.ProblemsError](Mendable(extension.StageImage, err)); ok {
		g.put(more.Problems)
	}
}

// put adds problems, except at a place that has one: it is the same.
func (g *gathered) put(more []extension.Problem) {
	for _, p := range more {
		if !slices.ContainsFunc(*g, func(q extension.Problem) bool {
			same := q.File == p.File && q.Line == p.Line && (p.Line > 0 && q.Column == p.Column || q.Text == p.Text)
			return same || p.File == "" && strings.HasSuffix(q.Text, p.Text) // extension() threw it
		}) {
			*g = append(*g, p)
		}
	}
}

// addTypes adds problems of types, except that a file cannot be read if the bundler has said that.
func (g *gathered) addTypes(err error) {
	if more, ok := errors.AsType[*extension.ProblemsError](err); ok {
		unread := map[string]bool{}
		for _, p := range *g {
			unread[p.File] = unread[p.File] || p.Line > 0
		}
		g.put(slices.DeleteFunc(more.Problems, func(p extension.Problem) bool { return unread[p.File] && typecheck.IsSyntax(p) }))
	}
}

// follow adds what went wrong at the top level, unless it is in a line that has a problem, or if the source is partial: it may follow from that.
func (g *gathered) follow(err error, partial bool) {
	more, ok := errors.AsType[*extension.ProblemsError](Mendable(extension.StageBundle, err))
	if !ok || partial {
		return
	}
	g.put(slices.DeleteFunc(more.Problems, func(p extension.Problem) bool {
		return slices.ContainsFunc(*g, func(q extension.Problem) bool { return q.File == p.File && q.Line == p.Line })
	}))
}

// outline loads the component of a draft with problems, and checks its tools.
func (b *build) outline(ctx context.Context) (err error) {
	if b.component == nil {
		if b.component, err = b.options.Host.Load(ctx, b.wasm); err != nil {
			return err
		}
	}
	err = b.readTools(ctx)
	if b.source.Absent && !errors.As(err, new(*extension.ProblemsError)) && !errors.As(err, new(*host.DefinitionError)) {
		return nil // it may follow from what is not there
	}
	return err
}

// testsBeside tests a draft with problems. If one is in the code, it only reads the answers of the tests: what fails may follow from it.
func (b *build) testsBeside(ctx context.Context, all gathered) error {
	code := slices.ContainsFunc(all, func(p extension.Problem) bool { return p.File != extension.ManifestFile })
	if !code && b.component != nil && !b.source.Absent && len(b.gaps.Bindings) == 0 && !b.gaps.AnyBinding && !b.gaps.Vars {
		return b.test(ctx)
	}
	m := b.seen.Manifest
	wrong, err := trial.Answers(ctx, trial.Request{Bindings: b.withDefaults(m.Bindings), Tests: m.Tests, Skip: b.gaps.Tests})
	if err != nil || len(wrong) == 0 {
		return err
	}
	return &extension.ProblemsError{Stage: extension.StageTest, Problems: wrong}
}

// checkTypes checks the types of what is seen.
func (b *build) checkTypes(ctx context.Context) error {
	b.worked = true
	var progress func(message string)
	if working := b.draft.Working; working != nil {
		progress = func(message string) { working(extension.StageTypes, message) }
	}
	bindings, types := b.gaps.Bind(extension.Known(b.withDefaults(b.seen.Manifest.Bindings)), b.called.toolTypes())
	for name := range b.called.open {
		types[name] = "any"
	}
	return b.options.Types.Check(ctx, typecheck.Request{
		Files: b.seen.Files, Entry: b.seen.Entry, Bindings: bindings, AnyBinding: b.gaps.AnyBinding, Types: types, Vars: b.gaps.VarTypes(b.seen.Manifest.Vars),
		WIT: b.options.Host.WIT(), Progress: progress, Packages: b.source.FS, Dependencies: b.seen.Manifest.Dependencies,
		Warn: func(text string) { b.written.Untyped = append(b.written.Untyped, text) },
	})
}

// faults finds what the code can only fail at.
func (b *build) faults(ctx context.Context) ([]extension.Problem, error) {
	in := inspect.Input{Gaps: b.gaps, Kinds: b.options.Kinds, FS: b.seen.Source(), Entry: b.seen.Entry, Bindings: b.seen.Manifest.Bindings, NodeFS: b.seen.Manifest.FS, Vars: len(b.seen.Manifest.Vars) > 0}
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
