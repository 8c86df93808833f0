package lifecycle

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing/fstest"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/inspect"
	"github.com/stilehost/stile/extension/policy"
	"github.com/stilehost/stile/extension/trial"
	"github.com/stilehost/stile/extension/typecheck"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/npmspec"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/sqlite"
	"github.com/stilehost/stile/internal/turns"
	"github.com/stilehost/stile/toolchain"
	"github.com/stilehost/stile/toolchain/npm"
)

const (
	maxTools = 2 << 20 // bytes of the definitions of all tools as JSON
)

// Draft is an author's version of an extension, before the stages.
type Draft struct {
	Scope extension.Scope
	// Manifest is JSON, in the long or the short form.
	Manifest []byte
	// Files are the source by path.
	Files map[string][]byte
	// Component is a component of any toolchain, in place of Files and Entry: its bytes are the version. No policy approves one, so it
	// waits for a person. Origin says in a few words where it comes from, such as "the file notes.wasm", for that person.
	Component []byte
	Origin    string
	// Entry is the module that exports the extension. Default: the only file, or else the first of [Entries].
	Entry string
	// Author is its author, in the form of a scope: "agent:claude" or "user:tom". Via is how it came.
	Author, Via string
	// Signer is the verified signer of an import, or empty. The person who approves sees it.
	Signer string
	// AllowFresh accepts npm packages that are younger than the policy allows. Only a person sets it.
	AllowFresh bool
	// Offline asks no npm registry: versions and packages are those that were fetched before.
	Offline bool
	// NoTypes leaves out the check of types, which takes a fraction of a second, and seconds the first time on a machine.
	NoTypes bool
	// Progress, when not nil, is called with each stage as it begins. Working, when not nil, is called with a few words while a stage
	// fetches or prepares something that takes seconds, at most ten times a second, from another goroutine.
	Progress func(extension.Stage)
	Working  func(stage extension.Stage, message string)

	packed     bool   // it is a pack, which went through the checks of its author's store
	lock       []byte // of a pack
	reason     string // why it is requested, if known
	verdict    policy.Decision
	generation *Generation         // the generation that it comes from
	tried      bool                // it is tested, and nothing is kept
	asked      []extension.Binding // what it asks for, with what its patterns of tools mean
	by         string              // who asks, if not its author
}

// Release is a version in a scope, and its outcome.
type Release struct {
	// ID is its number, by which a person approves it.
	ID     int64
	Scope  extension.Scope
	Name   string
	Digest string
	State  State
	Author string
	// Signer is who signed the imported pack. It is empty if no signature was verified.
	Signer string
	Asked  time.Time
	// Decided is when it was approved or refused. By is who decided, Line the line of the policy that decided, and Reason why. For
	// a promoted release that waits, Reason says where it came from.
	Decided          time.Time
	By, Line, Reason string
	// Quarantine says why its tools cannot be called; it is empty if they can.
	Quarantine string
	// Dropped is what the store no longer has of the version; it is empty if it has everything.
	Dropped Dropped
}

// Written is the outcome of a draft that passed all stages.
type Written struct {
	Version *Version
	Release Release
	// Unchanged is set when this version was active already.
	Unchanged bool
	// Changes are the differences of its authority from that of the active version, or from none.
	Changes []extension.Change
	// Asked is what it asks for, with what its patterns of tools mean in its scope.
	Asked []extension.Binding
	// Cut is what the operator's ceiling removes from the request.
	Cut []extension.Change
	// Why says why the policy leaves it to a person. It is empty otherwise.
	Why string
	// Tests are the results of its tests.
	Tests []trial.Result
	// Unchecked says why the compiler that checks types was not available. It is nil if types were checked, or if the draft did without.
	Unchecked error
	// Untyped are sentences about packages whose types the check of types did without.
	Untyped []string
	// Took is how long each stage worked.
	Took map[extension.Stage]time.Duration
}

// Write takes a draft through all stages. At the end, its release is active if the policy approves it, or else waits for a person.
// If a stage fails, nothing changes. The error is then an *extension.ProblemsError, which the author can correct, or a
// *[BudgetError] or *[StorageError]. Other errors are that of ctx, of a toolchain that cannot be obtained, or of a full disk.
func (m *Manager) Write(ctx context.Context, d Draft) (*Written, error) {
	m.options.Follow(m.setPolicy)
	b := &build{Manager: m, draft: d, written: &Written{Took: map[extension.Stage]time.Duration{}}}
	defer b.close()
	if err := b.run(ctx); err != nil {
		return nil, err
	}
	if err := b.commit(ctx); err != nil {
		return nil, m.refused(ctx, d, b, extension.StagePolicy, err)
	}
	if b.written.Release.State == Active && !b.written.Unchanged {
		m.loaded.put(b.version.Digest, b.component, memoryOf(b.wasm, b.version.Tools))
		b.component = nil
	}
	return b.written, m.changedTools(context.WithoutCancel(ctx))
}

// Try takes a draft through the stages up to its tests, and returns their results. It keeps nothing: no version, no release, and no line
// of the audit log. Failed tests are in the results. The errors are those of [Manager.Write].
func (m *Manager) Try(ctx context.Context, d Draft) ([]trial.Result, error) {
	d.tried = true
	b := &build{Manager: m, draft: d, written: &Written{Took: map[extension.Stage]time.Duration{}}}
	defer b.close()
	err := b.run(ctx)
	if problems, ok := errors.AsType[*extension.ProblemsError](err); ok && problems.Stage == extension.StageTest && slices.ContainsFunc(b.written.Tests, func(r trial.Result) bool { return !r.Passed }) {
		err = nil
	}
	return b.written.Tests, err
}

// run takes the draft through its stages.
func (b *build) run(ctx context.Context) error {
	m, d := b.Manager, b.draft
	author, err := extension.ParseScope(d.Author)
	if err != nil {
		return fmt.Errorf("author: %w", err)
	}
	b.author = author
	ctx = turns.For(ctx, d.Author)
	if _, err := d.Scope.MarshalText(); err != nil {
		return fmt.Errorf("scope: %w", err)
	}
	n, err := d.count(ctx, m)
	full, _ := errors.AsType[*BudgetError](err)
	if err != nil && (full == nil || !b.known(ctx)) {
		return err
	}
	stages := extension.Stages(!d.NoTypes)
	if d.tried {
		stages = slices.DeleteFunc(stages, func(s extension.Stage) bool { return s == extension.StagePolicy })
	}
	if d.Component != nil { // nothing is resolved or built
		stages = slices.DeleteFunc(stages, func(s extension.Stage) bool { return s == extension.StageResolve || s == extension.StageBundle })
		b.draft.reason = cut("a component without source, from " + cmp.Or(d.Origin, "its bytes alone"))
	}
	work := map[extension.Stage]func(context.Context) error{
		extension.StageValidate: b.validate,
		extension.StageResolve:  b.resolve,
		extension.StageBundle:   b.assemble,
		extension.StageTypes:    b.types,
		extension.StageImage:    b.describe,
		extension.StageReport:   b.report,
		extension.StageTest:     b.test,
		extension.StagePolicy:   b.decide,
	}
	for _, stage := range stages {
		if d.Progress != nil {
			d.Progress(stage)
		}
		start := time.Now()
		err := work[stage](ctx)
		if err != nil {
			err = b.withOthers(ctx, stage, err)
		}
		b.written.Took[stage] = time.Since(start)
		switch g := d.generation; {
		case stage == extension.StageValidate && err != nil && !b.worked, stage == extension.StageImage && err == nil && b.unchanged(ctx):
			m.uncount(ctx, n)
		case stage == extension.StageImage && err == nil && full != nil:
			return full // the same sources made another version
		case g != nil:
			g.built = true
		}
		if err != nil {
			return m.refused(ctx, d, b, stage, err)
		}
	}
	return nil
}

// build is a draft on its way through the stages.
type build struct {
	*Manager
	draft   Draft
	written *Written

	author    extension.Scope
	version   *Version
	seen      *Version         // what static checks can look at, also if the manifest is not valid
	gaps      extension.Gaps   // what could not be read of its manifest
	compared  bool             // the static checks have compared its tools with its code
	worked    bool             // something took more than reading the draft
	derived   *inspect.Derived // if any
	source    toolchain.Source
	wasm      []byte
	component *host.Component
	active    Release             // if any
	before    *Version            // the active one, if any
	approved  []extension.Binding // of the active one
	called    resolved            // what it calls of other extensions
	decision  policy.Decision
}

func (b *build) close() {
	if b.component != nil {
		if err := b.component.Close(); err != nil {
			b.options.Logger.Warn("close a component that was built", "error", err)
		}
	}
}

// validate checks what can be checked before anything is built.
func (b *build) validate(ctx context.Context) error {
	m, err := extension.ParseWith(b.options.Kinds, b.draft.Manifest)
	var problems []extension.Problem
	if wrong, ok := errors.AsType[*extension.ManifestError](err); ok {
		if b.draft.Component != nil {
			return err
		}
		problems, m, b.gaps = wrong.Problems(), wrong.Partial, wrong.Gaps
		if m == nil {
			m, b.gaps = &extension.Manifest{}, extension.Gaps{AnyBinding: true, Vars: true, FS: true}
		}
	} else if err != nil {
		return err
	}
	v := &Version{
		Manifest: m, manifest: slices.Clone(b.draft.Manifest), Files: maps.Clone(b.draft.Files), Entry: b.draft.Entry,
		Created: b.options.Now(), Author: b.draft.Author,
	}
	if len(problems) == 0 {
		b.version, b.written.Version = v, v
	}
	for name, data := range v.Files {
		v.Files[name] = bytes.Clone(data) // the caller cannot change these bytes between build, digest and storage
	}
	if b.draft.Component != nil {
		if len(v.Files) > 0 || v.Entry != "" {
			return errors.New("a draft has a component or files, and not both")
		}
		if err := b.wrapPlugin(); err != nil {
			return err
		}
		if err := CheckComponent(b.draft.Component); err != nil {
			return err
		}
		b.give()
	} else {
		wrong, readable := checkFiles(v)
		problems = append(problems, wrong...)
		if readable {
			b.seen = v
			b.derived, wrong = inspect.Check(v.Source(), v.Entry, m.Tools)
			b.compared = len(wrong) > 0
			problems = append(problems, wrong...)
		}
	}
	wrong, err := b.resolveCallees(ctx, m)
	if err != nil {
		return err
	}
	problems = append(problems, wrong...)
	taken := b.db.View(ctx, func(c *sqlite.Conn) error {
		if m.Name == "" {
			return nil
		}
		return checkNames(ctx, c, m, b.draft.Manifest, b.draft.Scope, b.draft.Author)
	})
	if found, ok := errors.AsType[*extension.ProblemsError](taken); ok {
		problems = append(problems, found.Problems...)
	} else if taken != nil {
		return taken
	}
	if len(problems) > 0 {
		return &extension.ProblemsError{Stage: extension.StageValidate, Problems: problems}
	}
	return b.db.View(ctx, func(c *sqlite.Conn) error {
		if err := b.checkRoom(ctx, c, b.draft.Scope, m.Name); err != nil {
			return err
		}
		return b.look(ctx, c, func(digest string) (*Version, error) { return loadVersion(ctx, c, b.options.Kinds, digest) })
	})
}

// look finds the active version.
func (b *build) look(ctx context.Context, c *sqlite.Conn, load func(digest string) (*Version, error)) (err error) {
	b.before, b.approved = nil, nil
	b.active, err = releaseIn(ctx, c, b.draft.Scope, b.version.Manifest.Name, Active)
	if notFound := (*NotFoundError)(nil); errors.As(err, &notFound) {
		return nil
	} else if err != nil {
		return err
	}
	b.before, err = load(b.active.Digest)
	if damaged := (*DamagedError)(nil); errors.As(err, &damaged) {
		return nil // treat the replacement like a first version
	}
	if err == nil {
		b.approved, err = bindingsOf(ctx, c, b.options.Kinds, b.active.ID, b.before.Manifest)
	}
	return err
}

// checkFiles checks the source tree and finds its entry. It reports whether the files can be read: those of v that remain.
func checkFiles(v *Version) (problems []extension.Problem, readable bool) {
	total, count := int64(0), len(v.Files)
	for _, name := range slices.Sorted(maps.Keys(v.Files)) {
		total += int64(len(v.Files[name]))
		if !fs.ValidPath(name) || name == "." || unclear(name) || npmspec.InPackage(name) || strings.Contains(name, "\\") {
			problems = append(problems, extension.Problem{File: printable.Text(name), Text: "this is not the name of a source file", Fix: `a path like "tool.ts" or "src/parse.ts"`})
			delete(v.Files, name)
		}
	}
	if count == 0 {
		return []extension.Problem{{Text: "there is no source file", Fix: `one with a default export, such as "tool.ts"`}}, false
	}
	if large := extension.TooLarge(count, total); large != nil {
		return []extension.Problem{*large}, false
	}
	if len(v.Files) == 0 {
		return problems, false
	}
	if v.Entry == "" {
		v.Entry = findEntry(v)
	}
	if _, ok := v.Files[v.Entry]; !ok {
		if len(problems) == 0 { // otherwise it may have one of the wrong names
			problems = append(problems, extension.Problem{File: printable.Text(v.Entry), Text: "the entry file does not exist", Fix: `the path of the module with the default export as "entry"`})
		}
		return problems, false
	}
	return problems, true
}

func findEntry(v *Version) string {
	names := slices.Sorted(maps.Keys(v.Files))
	if len(names) == 1 {
		return names[0]
	}
	for _, name := range Entries(v.Manifest.Name) {
		if _, ok := v.Files[name]; ok {
			return name
		}
	}
	return "index.ts"
}

// EntryEndings are the endings of the files that are looked for as the entry of an extension.
func EntryEndings() []string { return []string{".ts", ".tsx", ".js", ".mjs"} }

// Entries returns the files of an extension that are its entry if it names none, the first that exists.
func Entries(extension string) (names []string) {
	for _, stem := range []string{"index", "tool", extension, "src/index"} {
		for _, ending := range EntryEndings() {
			names = append(names, stem+ending)
		}
	}
	return names
}

// resolve resolves the npm packages.
func (b *build) resolve(ctx context.Context) (err error) {
	lock := b.draft.lock
	if lock == nil && b.before != nil {
		lock = b.before.Lock
	}
	how := npm.Request{Lock: lock, AllowFresh: b.draft.AllowFresh, Offline: b.draft.Offline}
	if working := b.draft.Working; working != nil {
		how.Progress = func(p npm.Progress) { working(extension.StageResolve, p.String()) }
	}
	b.source, err = b.sourceOf(ctx, b.seen, b.derived, how)
	return err
}

// source returns the source from which a version is rebuilt.
func (m *Manager) source(ctx context.Context, v *Version) (toolchain.Source, error) {
	derived, err := inspect.Derive(v.Source(), v.Entry)
	if err != nil {
		return toolchain.Source{}, err
	}
	again := *v // the original's packages and lockfile stay unchanged
	return m.sourceOf(ctx, &again, derived, npm.Request{Lock: v.Lock, AllowFresh: true})
}

// withDefaults adds the bindings that every extension has.
func (m *Manager) withDefaults(bindings []extension.Binding) []extension.Binding {
	return extension.Merge(bindings, extension.Defaults(m.options.Kinds))
}

// sourceOf resolves packages, keeping those of the lockfile in how, and assembles the tree, including the module derived from the entry. It
// sets the lockfile and the packages of v. With an *extension.ProblemsError, it returns a source whose imports fail when they are used where
// there is such a problem, to look at the rest.
func (m *Manager) sourceOf(ctx context.Context, v *Version, derived *inspect.Derived, how npm.Request) (toolchain.Source, error) {
	tree, entry := fs.FS(v.Source()), v.Entry
	if derived != nil {
		tree, entry = derived.Tree(tree), derived.Entry
	}
	source := toolchain.Source{Entry: entry, Bindings: extension.Known(m.withDefaults(v.Manifest.Bindings)), Files: v.Manifest.FS}
	found, err := npm.Imports(ctx, tree, entry, m.options.Bundler)
	wrong, ok := errors.AsType[*extension.ProblemsError](Mendable(extension.StageBundle, err))
	if err != nil && !ok {
		return source, err
	}
	resolution := &npm.Resolution{}
	if imports := found.Packages; len(imports)+len(v.Manifest.Dependencies) > 0 {
		var more *extension.ProblemsError
		how.Dependencies, how.Imports, how.Types = v.Manifest.Dependencies, imports, m.options.Types != nil
		if resolution, more, err = m.packages(ctx, v, how); err != nil {
			return source, err
		}
		wrong = wrong.And(more)
		v.Lock, v.Packages = resolution.Lock, resolution.Packages
	} else {
		source.Found = found
	}
	source.FS, source.Absent = npm.Tree(tree, resolution.FS), wrong != nil
	if wrong != nil {
		source.Found = nil
		return source, wrong
	}
	return source, nil
}

// maxResolves is how often npm chooses packages for a draft. Each time but the last, it leaves some out, because npm tells of one problem at a
// time.
const maxResolves = 4

// packages resolves packages. It returns those without a problem, and the problems of the others.
func (m *Manager) packages(ctx context.Context, v *Version, how npm.Request) (*npm.Resolution, *extension.ProblemsError, error) {
	none := &npm.Resolution{}
	if m.options.Packages == nil {
		return none, &extension.ProblemsError{Stage: extension.StageResolve, Problems: []extension.Problem{
			{Text: "there are no npm packages here: " + strings.Join(how.Imports, ", "), Fix: "it without packages"},
		}}, nil
	}
	var wrong *extension.ProblemsError
	for range maxResolves {
		resolution, err := m.options.Packages.Resolve(ctx, how)
		if err == nil {
			return resolution, wrong, nil
		}
		more, ok := errors.AsType[*extension.ProblemsError](Mendable(extension.StageResolve, err))
		if !ok {
			return none, wrong, err
		}
		before := len(how.Dependencies) + len(how.Imports)
		how.Dependencies, how.Imports = withoutNamed(how, more.Problems)
		wrong = wrong.And(blameImports(more, v))
		if left := len(how.Dependencies) + len(how.Imports); left == 0 || left == before { // nothing says which package it is
			break
		}
	}
	return none, wrong, nil
}

// assemble makes the component. Equal sources give equal bytes, so an earlier build comes from the cache.
func (b *build) assemble(ctx context.Context) error {
	if unknown := b.unknownInterfaces(); len(unknown) > 0 {
		return &extension.ProblemsError{Stage: extension.StageBundle, Problems: unknown}
	}
	return b.make(ctx)
}

func (b *build) make(ctx context.Context) error {
	tools, err := b.options.Toolchain(ctx)
	if err != nil {
		return err
	}
	b.wasm, err = tools.Assemble(ctx, b.source, false)
	return err
}

// unknownInterfaces are problems of bindings that this host does not have.
func (b *build) unknownInterfaces() (problems []extension.Problem) {
	for _, binding := range b.seen.Manifest.Bindings {
		if name := binding.Grant.Interface(); b.options.Host.WIT().Interface(name) == nil {
			line, column := extension.PlacesIn(b.draft.Manifest).OfBinding(binding.Name)
			problems = append(problems, extension.Problem{
				File: extension.ManifestFile, Line: line, Column: column, Text: fmt.Sprintf("bindings.%s: there is no interface %s here", binding.Name, name), Fix: "the manifest without it",
			})
		}
	}
	return problems
}

// types checks the types of the author's code, which the bundler has already read.
func (b *build) types(ctx context.Context) error {
	if b.draft.Component != nil {
		return nil
	}
	if b.options.Types == nil {
		b.written.Unchecked = &typecheck.UnavailableError{Err: errors.New("there is no compiler here")}
		return nil
	}
	err := b.checkTypes(ctx)
	if unavailable, ok := errors.AsType[*typecheck.UnavailableError](err); ok {
		b.written.Unchecked = unavailable
		return nil
	}
	return err
}

// describe loads the component and asks it for its tools.
func (b *build) describe(ctx context.Context) (err error) {
	v := b.version
	if b.draft.Component != nil {
		if err := b.loadGiven(ctx); err != nil {
			return err
		}
	} else {
		if b.component, err = b.options.Host.Load(ctx, b.wasm); err != nil {
			return err
		}
		v.Component = b.component.Digest()
	}
	if err := b.readTools(ctx); err != nil {
		return err
	}
	v.Digest, err = v.record().digest()
	return err
}

// readTools asks the component for its tools, and checks them.
func (b *build) readTools(ctx context.Context) (err error) {
	v := cmp.Or(b.version, b.seen)
	var problems []extension.Problem
	v.Tools, err = b.component.Tools(ctx)
	tools, known := v.Tools, err == nil
	if wrong, ok := errors.AsType[*host.DefinitionError](err); ok && len(wrong.Usable) > 0 {
		found, _ := errors.AsType[*extension.ProblemsError](Mendable(extension.StageImage, err))
		problems, tools = found.Problems, wrong.Usable
	} else if err != nil {
		return err
	}
	if b.source.Absent {
		for _, d := range tools {
			if why, _ := toolchain.RefusedTool(d); why != "" {
				problems = append(problems, extension.Problem{Text: why})
			}
		}
	}
	for _, check := range []error{checkSchemas(tools), checkSize(tools)} {
		if found, ok := errors.AsType[*extension.ProblemsError](check); ok {
			problems = append(problems, found.Problems...)
		} else if check != nil {
			return check
		}
	}
	if known && len(v.Manifest.Tools) > 0 && !b.compared {
		names := make([]string, len(tools))
		for i, t := range tools {
			names[i] = t.Name
		}
		if wrong := v.Manifest.CheckTools(names); wrong != nil && len(problems) == 0 {
			return wrong
		} else if found, ok := errors.AsType[*extension.ProblemsError](Mendable(extension.StageImage, wrong)); ok {
			problems = append(problems, found.Problems...)
		}
	}
	if len(problems) > 0 {
		return &extension.ProblemsError{Stage: extension.StageImage, Problems: problems}
	}
	return nil
}

// checkSize bounds what is stored about the tools in the version's transaction.
func checkSize(tools []abi.Definition) error {
	text, err := json.Marshal(tools)
	if err != nil {
		return fmt.Errorf("encode the tools: %w", err)
	}
	if len(text) > maxTools {
		return &extension.ProblemsError{Stage: extension.StageImage, Problems: []extension.Problem{{
			Text: fmt.Sprintf("names, descriptions and schemas of the tools have %d bytes as JSON; %d are allowed", len(text), maxTools), Fix: "fewer tools, or shorter descriptions",
		}}}
	}
	return nil
}

// report makes the report on what the code appears to do.
func (b *build) report(ctx context.Context) error {
	v := b.version
	if b.draft.Component != nil {
		return b.reportGiven()
	}
	tree := v.Source()
	if len(v.Packages) > 0 {
		if err := b.addPackages(tree); err != nil {
			return err
		}
	}
	in := inspect.Input{Kinds: b.options.Kinds, FS: tree, Entry: v.Entry, Bindings: v.Manifest.Bindings, NodeFS: v.Manifest.FS, Vars: len(v.Manifest.Vars) > 0, Component: int64(len(b.wasm))}
	for _, p := range v.Packages {
		in.Packages = append(in.Packages, inspect.PackageInfo{Name: p.Name, Version: p.Version, License: p.License, Size: p.Size, Warnings: p.Warnings})
	}
	if b.before != nil {
		in.Previous = &b.before.Report
	}
	v.Report = inspect.Inspect(in)
	if b.draft.packed {
		return nil
	}
	if problems, err := b.faults(ctx); err != nil || len(problems) > 0 {
		return cmp.Or(err, error(&extension.ProblemsError{Stage: extension.StageReport, Problems: problems}))
	}
	return nil
}

// addPackages adds the bundled parts of packages to a tree. A bundle has only a part of most packages.
func (b *build) addPackages(tree fstest.MapFS) error {
	kept, err := toolchain.ReadKept(b.component.Section(toolchain.KeptSection))
	if err != nil {
		return fmt.Errorf("read what the component was built from: %w", err)
	}
	for name, data := range kept.Files {
		if npmspec.InPackage(name) {
			tree[name] = &fstest.MapFile{Data: data}
		}
	}
	return nil
}

// test runs the tests in the manifest. Tools that none of them shows to work are tried.
func (b *build) test(ctx context.Context) (err error) {
	v := cmp.Or(b.version, b.seen)
	b.written.Tests, err = b.trial(ctx, b.component, v, b.gaps.Tests...)
	if err != nil {
		return err
	}
	var problems []extension.Problem
	for _, r := range b.written.Tests {
		if r.Problem != nil {
			problems = append(problems, *r.Problem)
		}
	}
	wrong, err := trial.Answers(ctx, trial.Request{Bindings: b.withDefaults(v.Manifest.Bindings), Tests: v.Manifest.Tests, Skip: b.gaps.Tests})
	if err != nil {
		return err
	}
	for _, p := range wrong { // each test says only the first
		if !slices.ContainsFunc(problems, func(q extension.Problem) bool { return q.Text == p.Text }) {
			problems = append(problems, p)
		}
	}
	lacking, err := b.probe(ctx)
	if err != nil {
		return err
	}
	if problems = append(problems, lacking...); len(problems) > 0 {
		return &extension.ProblemsError{Stage: extension.StageTest, Problems: problems}
	}
	return nil
}

// probe finds tools that can only fail for what the platform lacks. Most of those use it in packages: [Manager.Write] has found what the
// author's own code names.
func (b *build) probe(ctx context.Context) ([]extension.Problem, error) {
	v := cmp.Or(b.version, b.seen)
	if b.draft.Component != nil || b.draft.packed || len(v.Packages) == 0 && !inspect.MayLack(v.Files) {
		return nil, nil
	}
	known := map[string]bool{} // to work, or not to
	for i, t := range v.Manifest.Tests {
		if i < len(b.written.Tests) {
			known[t.Tool] = known[t.Tool] || t.Error == "" && b.written.Tests[i].Passed || b.written.Tests[i].Problem != nil
		}
	}
	r := trial.Request{Component: b.component, Bindings: b.withDefaults(v.Manifest.Bindings), WASI: v.Manifest.WASI, Vars: v.Manifest.Vars, Packages: b.source.FS}
	return trial.Probe(ctx, r, known, inspect.InputNames(v.Files))
}

func (m *Manager) trial(ctx context.Context, c *host.Component, v *Version, skip ...int) ([]trial.Result, error) {
	return trial.Run(ctx, trial.Request{
		Component: c, Bindings: m.withDefaults(v.Manifest.Bindings), WASI: v.Manifest.WASI, Vars: v.Manifest.Vars, Tests: v.Manifest.Tests, Skip: skip,
	})
}

// decide asks the policy.
func (b *build) decide(context.Context) error {
	r := policy.Request{Scope: b.draft.Scope, Author: b.author, Asked: b.called.bindings, NoSource: !b.version.HasSource()}
	for _, p := range b.version.Packages {
		if p.Undeclared {
			r.Undeclared = append(r.Undeclared, p.Name)
		}
	}
	var before []extension.Binding
	if b.before != nil {
		before = b.approved
		if b.author == b.draft.Scope { // no author inherits the trust in another
			r.Approved = append([]extension.Binding{}, before...) // nil would say that none is active
			for _, p := range b.before.Packages {
				if p.Direct {
					r.Known = append(r.Known, p.Name)
				}
			}
		}
	}
	var lasted []extension.Durable
	if b.before != nil {
		lasted = b.before.Manifest.Durable
	}
	if b.author != b.draft.Scope || !extension.CoversDurable(lasted, b.version.Manifest.Durable) {
		r.Durable = b.version.Manifest.Durable
	}
	b.written.Asked, b.written.Changes = r.Asked, append(extension.Difference(before, r.Asked), extension.DurableDifference(lasted, b.version.Manifest.Durable)...)
	b.decision = b.policy.Load().Decide(r)
	b.written.Cut, b.written.Why = b.decision.Cut, ""
	if b.decision.Verdict == policy.Pending {
		b.written.Why = b.decision.Reason
	}
	return forbidden(b.decision)
}

// forbidden is the problem of a request that the policy refuses.
func forbidden(d policy.Decision) error {
	if d.Verdict != policy.Refused {
		return nil
	}
	return &extension.ProblemsError{Stage: extension.StagePolicy, Problems: []extension.Problem{
		{File: extension.ManifestFile, Text: fmt.Sprintf("%s (%s)", d.Reason, d.Line), Fix: "a manifest that asks for less"},
	}}
}

// Refuse records that a draft was refused, for a reason that its caller found before Write, such as its signature.
func (m *Manager) Refuse(ctx context.Context, d Draft, reason string) error {
	return m.writeRefusal(ctx, d, nil, extension.StageValidate, reason)
}

// writeRefusal records that a draft was refused. v may be incomplete, or nil.
func (m *Manager) writeRefusal(ctx context.Context, d Draft, v *Version, stage extension.Stage, reason string) error {
	e := Entry{Kind: "refuse", By: d.Author, Via: d.Via, Scope: d.Scope.String(), Reason: string(stage) + ": " + reason}
	if v != nil {
		e.Extension, e.Digest = v.Manifest.Name, v.Digest
	}
	return m.db.Update(ctx, func(c *sqlite.Conn) (err error) {
		now, entries := m.options.Now(), []Entry{e}
		if stage == extension.StageValidate {
			if entries, err = countRefusal(ctx, c, now, e); err != nil || len(entries) == 0 {
				return err
			}
		}
		return audit(ctx, c, now, entries...)
	})
}

// refusedPerHour is how many entries an hour may say why drafts of a scope were refused before they were built. Further refusals are
// only counted, because such drafts do not count as builds.
const refusedPerHour = 100

// countRefusal returns the entries that the audit log gets for a refusal: none, or its own, after one that says how many had none.
func countRefusal(ctx context.Context, c *sqlite.Conn, now time.Time, e Entry) (entries []Entry, err error) {
	var since, count, more int64
	err = c.Row(ctx, "SELECT since, entries, more FROM refusal WHERE scope = ?", e.Scope).Scan(&since, &count, &more)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, err
	}
	if at := now.UnixMilli(); at < since || at >= since+time.Hour.Milliseconds() {
		if more > 0 {
			text := fmt.Sprintf("%d more drafts were refused before they were built, from %s", more, time.UnixMilli(since).UTC().Format(time.RFC3339))
			entries = append(entries, Entry{Kind: e.Kind, By: "host", Scope: e.Scope, Reason: text})
		}
		since, count, more = at, 0, 0
	}
	if count < refusedPerHour {
		count++
		entries = append(entries, e)
	} else {
		more++
	}
	_, err = c.Exec(ctx, "INSERT OR REPLACE INTO refusal VALUES (?, ?, ?, ?)", e.Scope, since, count, more)
	return entries, err
}

// refused records that a draft failed, or that its author gave up, and joins everything that its author can correct in one error.
func (m *Manager) refused(ctx context.Context, d Draft, b *build, stage extension.Stage, err error) error {
	given := err
	err = Mendable(stage, err)
	reason := "given up"
	if problems, ok := errors.AsType[*extension.ProblemsError](err); ok {
		if d.Component != nil && stage == extension.StageImage && Sort(given).Kind == FailureLimit {
			problems.Problems[0].Fix = "a describe that needs less"
		}
		reason = problems.Problems[0].Text
	} else if ctx.Err() == nil {
		return err // the author's build is not at fault
	}
	if d.tried {
		return err
	}
	if err := m.writeRefusal(context.WithoutCancel(ctx), d, b.version, stage, reason); err != nil {
		m.options.Logger.Warn("write the audit log", "error", err)
	}
	return err
}

// cut makes a text short, printable and one line, for the audit log.
func cut(text string) string { return printable.Line(printable.Cut(text, 500)) }
