package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/extension/typecheck"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/bounded"
	"github.com/stilehost/stile/internal/jslex"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/schematype"
	"github.com/stilehost/stile/toolchain"
)

type devCommand struct {
	File string `arg:"" help:"Extension: .ts, .js, .mjs or .wasm, or a folder with it."`
	Tool string `arg:"" optional:"" help:"Tool to call after each change. Without it, the tools and their types are listed."`
	callFlags
	sourceFlags
	Types bool `default:"true" negatable:"" help:"Check types with the TypeScript compiler, which npm fetches once. Default: yes."`
	JSON  bool `name:"json" help:"Print each round as a JSON object on one line, for editors."`
}

// Help implements kong.HelpProvider.
func (*devCommand) Help() string {
	return `A round builds the source, calls the tool as stile run does, and checks types. The next round begins when a file changes that the last one read or looked for: the source, what it imports, the manifest, and the file of --input. It ends a call that still runs. Ctrl-C ends stile dev, with exit code 0.

Each round makes the call again, with its effects. Calls are not recorded. Files that a tool writes begin no round, unless they are code of the extension. The bindings of the manifest are those it has when stile dev starts: if it comes to ask for more, a round says so, and you start stile dev again to allow it.

With --json, each round is an object on one line of stdout: "round" counts from 1, "changed" has the files that began it, and "state" is ok, failed, or superseded by the next round. "tools", "result", "error" and "types" say what came of it, and "buildMs", "callMs" and "typesMs" how long it took.

Examples:

    stile dev notes.ts
    stile dev notes.ts list_notes --manifest notes.json
    stile dev ./github list_issues --bind 'github=http:https://api.github.com/repos/**' --input @query.json
    stile dev notes.wasm list_notes --manifest notes.json
    stile dev notes.ts list_notes --bind notes=dir:. --json`
}

// Run implements the command.
func (c *devCommand) Run(ctx context.Context, s *streams) (err error) {
	if err := c.ready(); err != nil {
		return err
	}
	if c.Output != "" && sameFile(entryOf(c.File), c.Output) {
		return usagef("%s is the source itself; name another output file", c.Output)
	}
	d := &dev{devCommand: c, s: s, folder: filepath.Dir(c.File)}
	if info, err := os.Stat(c.File); err == nil && info.IsDir() {
		d.folder = c.File
	}
	if c.Manifest != "" {
		c.Manifest = manifestFile(c.Manifest)
		if d.allowed, err = readManifest(c.Manifest); err != nil {
			return err
		}
	}
	if d.limits, d.input, err = c.read(ctx, s); err != nil {
		return err
	}
	if d.n, err = openSession(ctx, s, sessionOptions{memory: d.limits.Memory}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.n.Close()) }()
	if c.Types {
		checker, client, err := d.n.checker()
		if err != nil {
			return err
		}
		d.checker = checker
		defer func() { err = errors.Join(err, checker.Close(), client.Close()) }()
	}
	return d.rounds(ctx)
}

// dev is a stile dev that runs.
type dev struct {
	*devCommand
	s       *streams
	n       *session
	folder  string              // of the source
	checker *typecheck.Checker  // nil if types are not checked
	allowed *extension.Manifest // as it was when the person started this
	limits  host.Limits
	input   []byte
	told    bool     // that types cannot be checked
	untyped []string // what the last round said of packages without types
}

// devRound is what came of a round.
type devRound struct {
	Round     int                 `json:"round"`
	Changed   []string            `json:"changed"`
	State     string              `json:"state"`
	Tools     []tool              `json:"tools,omitempty"`
	Result    json.RawMessage     `json:"result,omitempty"`
	Error     *failure            `json:"error,omitempty"`
	Types     []extension.Problem `json:"types,omitempty"`
	Unchecked string              `json:"unchecked,omitempty"`
	Untyped   []string            `json:"untyped,omitempty"` // sentences about packages whose types the check did without
	Build     float64             `json:"buildMs,omitempty"`
	Call      float64             `json:"callMs,omitempty"`
	Check     float64             `json:"typesMs,omitempty"`
}

const (
	devOK         = "ok"
	devFailed     = "failed"
	devSuperseded = "superseded"
)

// How often files are looked at: so rarely that it takes little of a processor.
const (
	lookInterval = 25 * time.Millisecond
	lookShare    = 50
	// settleLooks is how many looks a round waits for files that go on changing.
	settleLooks = 20
)

// rounds makes rounds until ctx ends.
func (d *dev) rounds(ctx context.Context) error {
	changed := []string{}
	for number := 1; ; number++ {
		file := entryOf(d.File)
		w := newWatched(func() sources { return sourcesIn(d.folder, d.n.home, d.n.cache, d.n.keys) })
		running, end := context.WithCancel(ctx)
		done := make(chan devRound, 1)
		go func() { done <- d.round(running, w, file, devRound{Round: number, Changed: changed}) }()
		over, err := d.watch(ctx, w, done)
		end()
		if !over {
			r := <-done
			if ctx.Err() == nil && err == nil {
				err = d.print(devRound{Round: r.Round, Changed: r.Changed, State: devSuperseded})
			}
		}
		if ctx.Err() != nil || err != nil {
			return err
		}
		changed = d.settle(ctx, w)
	}
}

// watch prints the round when it is over, and returns when a file changes or ctx ends.
func (d *dev) watch(ctx context.Context, w *watched, done <-chan devRound) (over bool, err error) {
	looks := time.NewTimer(lookInterval)
	defer looks.Stop()
	for {
		select {
		case <-ctx.Done():
			return over, nil
		case r := <-done:
			over = true
			if ctx.Err() != nil {
				return over, nil
			}
			if err := d.print(r); err != nil {
				return over, err
			}
		case <-looks.C:
			began := time.Now()
			if len(w.changed()) > 0 {
				return over, nil
			}
			looks.Reset(max(lookInterval, lookShare*time.Since(began)))
		}
	}
}

// settle waits until the files stay as they are for an interval, but not for long, and returns those that changed.
func (*dev) settle(ctx context.Context, w *watched) (changed []string) {
	looks := time.NewTicker(lookInterval)
	defer looks.Stop()
	before := w.states()
	for range settleLooks {
		select {
		case <-ctx.Done():
			return nil
		case <-looks.C:
		}
		now := w.states()
		if maps.Equal(before, now) {
			break
		}
		before = now
	}
	return w.changed()
}

// round builds the source, calls the tool and checks types. People see each as it comes.
func (d *dev) round(ctx context.Context, w *watched, file string, r devRound) devRound {
	d.head(r)
	w.see(file)
	p, err := d.prepare(w, file)
	wrong, partial := errors.AsType[*extension.ManifestError](err)
	if partial = partial && wrong.Partial != nil; partial { // the code is looked at all the same
		p.manifest, p.gaps = wrong.Partial, wrong.Gaps
		p.wants = wants{manifest: d.Manifest, files: wrong.Partial.FS, bindings: extension.Known(extension.Merge(wrong.Partial.Bindings, extension.Defaults(capabilities.Builtin)))}
	}
	built, checked := make(chan bool, 1), make(chan struct{})
	check := (err == nil || partial) && d.checker != nil && filepath.Ext(file) != ".wasm"
	go func() {
		defer close(checked)
		if check {
			d.check(ctx, w, file, p, built, &r)
		}
	}()
	switch {
	case err == nil:
		err = d.make(ctx, w, file, p, built, &r)
	case partial:
		err = d.makePartial(ctx, w, file, p, built, err)
	}
	if err != nil && ctx.Err() == nil {
		f := explain(d.besideManifest(err, file))
		r.Error = &f
		d.say("%s", d.s.failed(f))
	}
	<-checked
	r.State = devOK
	if r.Error != nil || len(r.Types) > 0 {
		r.State = devFailed
	}
	return r
}

// say tells people, and editors nothing.
func (d *dev) say(format string, args ...any) {
	if !d.JSON {
		d.s.say(format, args...)
	}
}

// head begins the output of a round. On a terminal, it takes the place of that of the last.
func (d *dev) head(r devRound) {
	if d.JSON {
		return
	}
	if d.s.interactive() && os.Getenv("TERM") != "dumb" { // whatever --color says
		_, _ = io.WriteString(d.s.err, "\x1b[2J\x1b[H")
	}
	if r.Round == 1 {
		d.s.say("stile: running %s; Ctrl-C ends it", line(d.File, 200))
		return
	}
	d.s.say("stile: round %d, for %s", r.Round, line(cmp.Or(strings.Join(r.Changed, ", "), d.File), 200))
}

// print prints what was not printed before.
func (d *dev) print(r devRound) error {
	if d.JSON {
		text, err := encode(r, "")
		if err == nil {
			_, err = fmt.Fprintf(d.s.out, "%s\n", text)
		}
		return err
	}
	if r.State == devSuperseded {
		return nil // the next round says so
	}
	parts := []string{}
	for _, part := range []struct {
		what string
		took float64
	}{{"built", r.Build}, {"called", r.Call}, {"checked types", r.Check}} {
		if part.took > 0 {
			digits := 0
			if part.took < 10 {
				digits = 1
			}
			parts = append(parts, fmt.Sprintf("%s in %.*f ms", part.what, digits, part.took))
		}
	}
	d.s.say("stile: %s", strings.Join(append(parts, "waiting for changes"), ", "))
	return nil
}

// widenedError reports a manifest that asks for more than the person allowed by starting stile dev.
type widenedError struct {
	file    string
	changes []string
}

func (e *widenedError) Error() string {
	return fmt.Sprintf("%s asks for more than when stile dev started: %s; start stile dev again to allow that", e.file, strings.Join(e.changes, "; "))
}

// prepare reads what a round needs besides the source.
func (d *dev) prepare(w *watched, file string) (p prepared, err error) {
	if d.Manifest != "" {
		w.see(d.Manifest)
	}
	if p, err = prepare(file, d.callFlags, d.sourceFlags); err != nil {
		return p, err
	}
	if p.manifest != nil {
		if err := d.widened(p.manifest); err != nil {
			return p, err
		}
	}
	p.request.Tool, p.request.Limits, p.request.Input = d.Tool, d.limits, d.input
	if name, ok := strings.CutPrefix(d.Input, "@"); ok {
		w.see(name)
		p.request.Input, err = readInput(d.Input, nil, d.limits.Input)
	}
	return p, err
}

// widened compares a manifest with the one that the person saw. Its name counts, because it names the extension's own workspace and buckets.
func (d *dev) widened(m *extension.Manifest) error {
	e := &widenedError{file: line(d.Manifest, 200)}
	if m.Name != d.allowed.Name {
		e.changes = append(e.changes, fmt.Sprintf("the name %s instead of %s", m.Name, d.allowed.Name))
	}
	if !extension.Covers(d.allowed.Bindings, m.Bindings) {
		for _, c := range extension.Difference(d.allowed.Bindings, m.Bindings) {
			if c.What != extension.Removed && c.What != extension.Narrowed {
				e.changes = append(e.changes, fmt.Sprintf("the binding %s (%s): %s", c.Binding, c.What, strings.Join(c.Lines, ", ")))
			}
		}
	}
	if e.changes == nil {
		return nil
	}
	return e
}

// make builds the source and calls the tool, or lists the tools. It tells built whether there is a component.
func (d *dev) make(ctx context.Context, w *watched, file string, p prepared, built chan<- bool, r *devRound) (err error) {
	began := time.Now()
	p.wants.through = w.through(filepath.Dir(file))
	component, _, err := d.n.load(ctx, file, p.wants)
	built <- err == nil
	r.Build = milliseconds(began)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, component.Close()) }()
	tools, err := p.offered(ctx, component)
	if err != nil {
		return err
	}
	if d.Tool == "" {
		if d.JSON {
			r.Tools = toolsOf(tools)
			return nil
		}
		_, err = io.WriteString(d.s.out, typedTools(tools))
		return err
	}
	began = time.Now()
	output, err := d.call(ctx, d.s, d.n, nil, p.bindings, p.request, component.Do)
	r.Call = milliseconds(began)
	switch {
	case err != nil || ctx.Err() != nil:
		return err
	case d.JSON && d.Output == "":
		r.Result = output
		return nil
	case d.JSON: // texts are no lines of JSON
		quiet := *d.s
		quiet.out = io.Discard
		return d.result(&quiet, output)
	default:
		return d.result(d.s, output)
	}
}

// makePartial builds the source beside a manifest with problems, and adds what is wrong with it.
func (d *dev) makePartial(ctx context.Context, w *watched, file string, p prepared, built chan<- bool, manifest error) error {
	p.wants.through = w.through(filepath.Dir(file))
	component, _, err := d.n.load(ctx, file, p.wants)
	built <- err == nil
	if err == nil {
		return errors.Join(manifest, component.Close())
	}
	first, _ := errors.AsType[*extension.ProblemsError](manifest)
	second, ok := errors.AsType[*extension.ProblemsError](lifecycle.Mendable(extension.StageBundle, err))
	if !ok {
		return manifest
	}
	return first.And(second)
}

func milliseconds(since time.Time) float64 {
	return float64(time.Since(since).Round(100*time.Microsecond).Microseconds()) / 1000
}

// typedTools lists tools for a person, each with its types and the first line of its description.
func typedTools(tools []abi.Definition) string {
	short := schematype.Detail{Depth: 2, Optional: 8, Line: true}
	var rows [][]string
	for _, d := range tools {
		types, _ := schematype.Parse(d.InputSchema).Type(short)
		types = d.Name + "(" + types + ")"
		if d.OutputSchema != nil {
			result, _ := schematype.Parse(*d.OutputSchema).Type(short)
			types += ": " + result
		}
		first, _, _ := strings.Cut(d.Description, "\n")
		rows = append(rows, []string{printable.Short(types, maxListed), first})
	}
	return table("", rows)
}

// check checks types, and tells people of the problems when it is known whether the source was built.
func (d *dev) check(ctx context.Context, w *watched, file string, p prepared, built <-chan bool, r *devRound) {
	began := time.Now()
	files, entry, err := d.sources(w, file)
	if err == nil {
		request := typecheck.Request{
			Files: files, Entry: entry, Bindings: p.wants.bindings, WIT: d.n.host.WIT(),
			Progress:   func(message string) { d.n.progress("Checking types: " + message + " ...") },
			Warn:       func(text string) { r.Untyped = append(r.Untyped, text) },
			AnyBinding: p.manifest == nil && (len(d.Bind) == 0 || len(d.Var) > 0) || p.gaps.AnyBinding,
		}
		request.Bindings, request.Types = p.gaps.Bind(p.wants.bindings, nil)
		if p.manifest != nil {
			request.Vars, request.Dependencies = p.gaps.VarTypes(p.manifest.Vars), p.manifest.Dependencies
		}
		if source, tree, err := toolchain.Open(file, d.n.home, d.n.cache, d.n.keys); err == nil {
			request.Packages = source.FS
			defer func() { _ = tree.Close() }() // it was only read
		}
		err = d.checker.Check(ctx, request)
		r.Check = milliseconds(began)
	}
	unread := !<-built
	if ctx.Err() != nil {
		return
	}
	if !slices.Equal(r.Untyped, d.untyped) { // once, not in each round
		for _, text := range r.Untyped {
			d.say("stile: types: %s", text)
		}
		d.untyped = r.Untyped
	}
	found, ok := errors.AsType[*extension.ProblemsError](nameSources(err, filepath.Dir(file)))
	switch {
	case ok:
		for _, p := range found.Problems {
			if !unread || !typecheck.IsSyntax(p) { // the bundler says the same
				r.Types = append(r.Types, p)
				d.say("stile: types: %s", printable.Text(p.String()))
			}
		}
	case err != nil && unread: // there may be no source
	case err != nil:
		r.Unchecked = printable.Text(err.Error())
		if !d.told {
			d.say("stile: %s", r.Unchecked)
		}
		d.told = true
	}
}

// sources reads the code and the data that types are of.
func (d *dev) sources(w *watched, file string) (files map[string][]byte, entry string, err error) {
	source, tree, err := toolchain.Open(file, d.n.home, d.n.cache, d.n.keys)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, tree.Close()) }()
	files = map[string][]byte{}
	room := int64(extension.MaxSource)
	for _, name := range slices.Concat([]string{file}, w.sources.files, w.sources.data) {
		inside, err := filepath.Rel(filepath.Dir(file), name)
		if inside = filepath.ToSlash(inside); err != nil || filepath.Ext(name) == ".wasm" || files[inside] != nil {
			continue
		}
		if jslex.IsCode(name) {
			w.see(name)
		}
		if data, err := bounded.ReadFile(source.FS, inside, room); err == nil { // what is missing is a problem of what imports it
			files[inside] = data
			room -= int64(len(data))
		}
	}
	return files, source.Entry, nil
}
