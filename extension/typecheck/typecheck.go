// Package typecheck checks the types of an extension's source with the TypeScript compiler. The compiler runs as a component
// without bindings, because hostile source could keep a compiler busy for ever. It is fetched once through npm,
// with a digest that is pinned here. Its image holds the declarations that an author sees, so a check takes a fraction of a
// second.
package typecheck

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/inspect"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/absent"
	"github.com/stilehost/stile/internal/cache"
	"github.com/stilehost/stile/internal/errkind"
	"github.com/stilehost/stile/internal/jslex"
	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/turns"
	"github.com/stilehost/stile/toolchain"
	"github.com/stilehost/stile/toolchain/npm"
)

// Options configure a Checker. Toolchain and Packages are needed.
type Options struct {
	// Toolchain returns the toolchain that builds the component of the compiler.
	Toolchain func(context.Context) (*toolchain.Toolchain, error)
	// Packages fetches the compiler.
	Packages *npm.Client
	// CacheDir keeps the component. KeyDir holds the key that authenticates it. Both can be those of the toolchain. Default:
	// nothing is kept, and each Checker fetches and builds the compiler.
	CacheDir, KeyDir string
	// RememberDir keeps which declarations of packages were too complex, authenticated with the key in KeyDir. Default: CacheDir.
	RememberDir string
	// CPU is the processor time of one check. A check that cannot use the types of packages is made again without them. Default: 15 s.
	CPU time.Duration
	// Progress is called with a few words when the compiler must be prepared, which takes seconds. Default: it is not called.
	Progress func(message string)
	// Logger receives events that no caller sees. Default: nothing is logged.
	Logger *slog.Logger
}

const (
	memory     = 256 << 20 // bytes of one check; the image has 31 MiB
	maxChecks  = 2         // at a time
	maxSource  = 1 << 20   // bytes of all files that are checked
	maxOutput  = 16 << 20  // bytes of the component's output
	retryAfter = time.Minute
	maxText    = 1000 // bytes of a problem's text

	complexTypes = "complextypes" // the kind of entries in the cache about types of packages that are too complex
	complexFor   = time.Hour      // how long they hold
)

// Checker checks types. It is safe for concurrent use. Its creator closes it.
type Checker struct {
	o       Options
	cache   *cache.Cache // nil if nothing is kept
	complex *cache.Cache // of types of packages that are too complex; often the same; nil if nothing is kept

	checking *turns.Places // for checks
	making   chan struct{} // has room for the goroutine that makes the fields below on first use
	// host is the checker's own host, with other limits and no recordings.
	host      *host.Host
	component *host.Component
	missing   error     // why there is no component
	again     time.Time // when to try again; until then, calls fail without waiting

	hindered func(took, used time.Duration) bool // the function of that name, except in tests
}

// New makes a checker. It fetches the compiler on first use.
func New(o Options) (*Checker, error) {
	if o.Toolchain == nil || o.Packages == nil {
		return nil, errors.New("typecheck: Toolchain and Packages are needed")
	}
	if o.CPU == 0 {
		o.CPU = 15 * time.Second
	}
	o.RememberDir = cmp.Or(o.RememberDir, o.CacheDir)
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	c := &Checker{o: o, checking: turns.New(maxChecks), making: make(chan struct{}, 1), hindered: hindered}
	var err error
	if c.cache, err = openCache(o.CacheDir, o); err == nil {
		if c.complex = c.cache; o.RememberDir != o.CacheDir {
			c.complex, err = openCache(o.RememberDir, o)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open cache: %w", err), c.Close())
	}
	return c, nil
}

func openCache(dir string, o Options) (*cache.Cache, error) {
	if dir == "" || o.KeyDir == "" {
		return nil, nil
	}
	return cache.Open(dir, o.KeyDir, o.Logger)
}

// Prepare makes the compiler ready, so that the first check need not wait for it. With a CacheDir, that holds for later processes too. The
// errors are an *[UnavailableError] and the end of ctx.
func (c *Checker) Prepare(ctx context.Context) error {
	switch _, err := c.ready(ctx); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("prepare the compiler: %w", context.Cause(ctx))
	default:
		return &UnavailableError{err}
	}
}

// Close waits for checks and frees the memory they ran in.
func (c *Checker) Close() error {
	c.making <- struct{}{}
	defer func() { <-c.making }()
	var errs []error
	if c.host != nil {
		errs = append(errs, c.host.Close())
	}
	if c.complex != nil && c.complex != c.cache {
		errs = append(errs, c.complex.Close())
	}
	if c.cache != nil {
		errs = append(errs, c.cache.Close())
	}
	return errors.Join(errs...)
}

// Request says what to check.
type Request struct {
	// Files are the source by path. Only modules that Entry leads to are checked.
	Files map[string][]byte
	Entry string
	// Packages has the folder node_modules with the declarations of packages, as npm.Resolution.FS has it. A package has the type any where it
	// brings none, and there is none of @types either; where its declarations have more than 4 MiB without comments or 1,000 files, with those that they
	// import; and where they depend on types of Node or a page for what the source uses. Default: packages have the type any.
	Packages fs.FS
	// Dependencies are the packages that the manifest names. Only of these, @types has types of what the source imports.
	Dependencies map[string]string
	// Warn, when not nil, is called with a sentence that names packages whose declarations were too much for the check. With a CacheDir, the
	// checker remembers for an hour that declarations were too complex, and does not try them again. It does not if they may have taken so
	// long because of what else the machine did.
	Warn func(text string)
	// Bindings are the bindings in env, names with their interfaces, as in toolchain.Source.
	Bindings map[string]string
	// Types are the types of bindings that say more than their interfaces, as in toolchain.EnvTypes.
	Types map[string]string
	// Vars are the fields of env.vars in TypeScript, as in toolchain.EnvTypes.
	Vars []string
	// AnyBinding is set if the bindings are not known: env then has every name, of the type any.
	AnyBinding bool
	// WIT has the embedder's interfaces that bindings name. Default: bindings of such interfaces have the type unknown.
	WIT *abi.Resolve
	// Progress, when not nil, is called with a few words each second while the check waits for the compiler to be ready, from another
	// goroutine.
	Progress func(message string)
}

// UnavailableError reports that types could not be checked. It says nothing about the source.
type UnavailableError struct{ Err error }

// Error implements error.
func (e *UnavailableError) Error() string { return "types were not checked: " + e.Err.Error() }

// Unwrap returns Err.
func (e *UnavailableError) Unwrap() error { return e.Err }

// Check returns the problems of a source's types, at most 20, as an *extension.ProblemsError. A source that is too complex to check
// within the limits has that as its problem. Other errors are an *[UnavailableError] and the end of ctx.
//
// In a file of 256 KiB and more, rows of tables are not looked at where others have the same type. At most 1 MiB is checked beside them: what comes from
// larger files has the type any, and Warn names them.
func (c *Checker) Check(ctx context.Context, r Request) error {
	files := map[string]string{}
	for name, content := range r.Files {
		if jslex.IsCode(name) || path.Ext(name) == ".json" {
			files[name] = string(content)
		}
	}
	left, size := fit(files, r.Entry)
	if size > maxSource {
		return &UnavailableError{fmt.Errorf("%s has %d KiB without the rows of its tables, and %d are checked at most", printable.Line(r.Entry), size>>10, maxSource>>10)}
	}
	if len(left) > 0 && r.Warn != nil {
		r.Warn(printable.Line(fmt.Sprintf("%s was not used in the check of types, because it is too large: what comes from there has the type any", printable.Cut(strings.Join(left, ", "), maxText))))
	}
	env := toolchain.EnvTypes(r.Bindings, r.Types, r.Vars, r.WIT)
	if r.AnyBinding {
		env = `import type {} from "stile"; declare module "stile" { interface Env { readonly [name: string]: any } }`
	}
	packages := imported(r.Packages, r.Dependencies, files)
	if len(packages.left) > 0 {
		r.unused(packages.left, "large")
	}
	component, err := c.readyWith(ctx, r.Progress)
	if err == nil {
		// The host's own queue does not serve callers in turn.
		if busy := c.checking.Take(ctx); busy != nil {
			return fmt.Errorf("check types: %w", busy)
		}
		defer c.checking.Give()
		var output []byte
		key, tooComplex, busy := c.key(packages), false, false
		if len(packages.Files) > 0 {
			tooComplex = c.failedBefore(key)
		}
		if !tooComplex {
			var used time.Duration
			began := time.Now()
			output, used, err = c.call(ctx, component, files, r.Entry, env, packages)
			tooComplex = tooMuch(err) && len(packages.Files) > 0 && ctx.Err() == nil
			if limit, limited := errors.AsType[*host.LimitError](err); tooComplex && limited && limit.Limit == "cpu" {
				busy = c.hindered(time.Since(began), used)
			}
			if tooComplex && c.o.Logger != nil {
				c.o.Logger.Info("types of packages are too complex to check", "error", err, "processor", used, "took", time.Since(began), "busy", busy)
			}
		}
		if tooComplex {
			how := "complex"
			if busy {
				how += " for the time that a busy machine has"
			}
			r.unused(slices.Sorted(maps.Keys(packages.Links[""])), how)
			output, _, err = c.call(ctx, component, files, r.Entry, env, imported(nil, nil, nil))
			if err == nil && !busy { // otherwise the source is too complex by itself
				c.failed(key)
			}
		}
		if err == nil {
			return problems(output, files)
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("check types: %w", context.Cause(ctx))
	}
	limit, limited := errors.AsType[*host.LimitError](err)
	thrown, failed := errors.AsType[*host.GuestError](err)
	_, trapped := errors.AsType[*host.TrapError](err)
	switch {
	case limited:
		return tooComplex(r.Entry, limit.Error())
	case failed:
		return tooComplex(r.Entry, "the compiler gave up: "+thrown.Failure.Message)
	case trapped:
		return tooComplex(r.Entry, "the compiler ran out of stack")
	default:
		return &UnavailableError{err}
	}
}

// unused warns that packages have the type any, because their types are too large or too complex.
func (r *Request) unused(packages []string, too string) {
	if r.Warn != nil {
		names := printable.Cut(strings.Join(packages, ", "), maxText)
		r.Warn(printable.Line(fmt.Sprintf("the types of %s were not used in the check, because they are too %s: what comes from there has the type any", names, too)))
	}
}

// hindered reports that a check may have used so much processor time because of others: it had to wait for a processor, so others used it
// too. They share its caches then, and often its core.
func hindered(took, used time.Duration) bool { return took > used+used/4 }

// failedBefore reports whether types of packages were too complex in the last hour. What slows a machine down is not always to be seen, so
// they are tried again later.
func (c *Checker) failedBefore(key string) bool {
	if c.complex == nil {
		return false
	}
	data, _, _ := c.complex.Get(complexTypes, key) // what cannot be read is found out again
	at, err := time.Parse(time.RFC3339, string(data))
	age := time.Since(at)
	return err == nil && age >= 0 && age < complexFor
}

func (c *Checker) failed(key string) {
	if c.complex == nil {
		return
	}
	if err := c.complex.Put(complexTypes, key, []byte(time.Now().UTC().Format(time.RFC3339))); err != nil && c.o.Logger != nil {
		c.o.Logger.Warn("remember that types of packages are too complex", "error", err)
	}
}

// call runs the compiler once, and says how much processor time it used.
func (c *Checker) call(ctx context.Context, component *host.Component, files map[string]string, entry, env string, packages declared) ([]byte, time.Duration, error) {
	input, err := json.Marshal(map[string]any{"files": files, "entry": entry, "env": env, "packages": packages})
	if err != nil {
		return nil, 0, err
	}
	result, err := component.Do(ctx, host.Request{Tool: "check", Input: input, Env: host.Env{}})
	return result.Output, result.Usage.CPU, err
}

// tooMuch reports an error that simpler types would avoid.
func tooMuch(err error) bool {
	return errkind.Is[*host.LimitError](err) || errkind.Is[*host.GuestError](err) || errkind.Is[*host.TrapError](err)
}

func tooComplex(entry, why string) error {
	return &extension.ProblemsError{Stage: extension.StageTypes, Problems: []extension.Problem{{
		File: printable.Line(entry), Text: "the types are too complex to check: " + printable.Line(printable.Cut(why, maxText)), Fix: "simpler types: no deep recursion, no large unions",
	}}}
}

// diagnostic is one problem from the component, which is trusted no more than any extension.
type diagnostic struct {
	File         string `json:"file"`
	Line         int    `json:"line"`
	Column       int    `json:"column"`
	Source       string `json:"source"`
	Code         int    `json:"code"`
	Text         string `json:"text"`
	MissingAwait bool   `json:"await"`
}

// read returns the first of the compiler's problems. There can be millions, each of a few bytes.
func read(output []byte) (found []diagnostic, err error) {
	d := json.NewDecoder(bytes.NewReader(output))
	if first, err := d.Token(); err != nil || first != json.Delim('[') {
		return nil, cmp.Or(err, errors.New("it is not a list"))
	}
	for d.More() && len(found) < abi.MaxProblems {
		var one diagnostic
		if err := d.Decode(&one); err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	if len(found) < abi.MaxProblems {
		_, err = d.Token() // the end of the list
	}
	return found, err
}

func problems(output []byte, files map[string]string) error {
	found, err := read(output)
	if err != nil {
		return &UnavailableError{fmt.Errorf("read what the compiler says: %w", err)}
	}
	if len(found) == 0 {
		return nil
	}
	all := &extension.ProblemsError{Stage: extension.StageTypes}
	for _, d := range found {
		if _, ok := files[d.File]; !ok || d.Line < 1 || d.Column < 1 {
			return &UnavailableError{errors.New("the compiler names a place that is not there")}
		}
		p := extension.Problem{
			File: printable.Line(d.File), Line: d.Line, Column: d.Column, Snippet: toolchain.Snippet(d.Source, d.Column), Fix: d.fix(),
		}
		// Advice about packages and compiler options does not apply here.
		text, _, _ := strings.Cut(d.Text, " Do you need to ")
		p.Text = fmt.Sprintf("%s (TS%d)", printable.Short(text, maxText), d.Code)
		all.Problems = append(all.Problems, p)
	}
	return all
}

// IsSyntax reports whether a problem of [Checker.Check] says that a file cannot be read as TypeScript.
func IsSyntax(p extension.Problem) bool { return syntax.MatchString(p.Text) }

var syntax = lazyregexp.New(`\(TS1\d{3}\)$`)

var noName = lazyregexp.New(`^(?:Cannot find name |Cannot use namespace |)'(\w+)'(?:$|\.| as a value| only refers to a type)`)

// noTool is what the compiler says of a tool that a binding to other tools does not have.
var noTool = lazyregexp.New(`^Property '(.*)' does not exist on type 'ToolCalls`)

// noMember is what the compiler says of a property that an object lacks.
var noMember = lazyregexp.New(`^Property '(\w+)' does not exist on type '([^']+)'`)

var noBinding = lazyregexp.New(`^Property '(.*)' does not exist on type 'Env'`)

// fix says what to write instead, if the compiler's message does not.
func (d *diagnostic) fix() string {
	if d.MissingAwait {
		return "await before it"
	}
	if name := noBinding.FindStringSubmatch(d.Text); name != nil {
		return fmt.Sprintf("a binding %q in the manifest, or the name of one that is there", printable.Line(name[1]))
	}
	if noTool.MatchString(d.Text) {
		return "a tool that the binding names in the manifest, by its full name: env.NAME.EXTENSION_TOOL(input)"
	}
	if member := noMember.FindStringSubmatch(d.Text); member != nil {
		instead, _ := absent.Member(member[2], member[1])
		return instead
	}
	if name := noName.FindStringSubmatch(d.Text); name != nil {
		// What the compiler does not find, the engine does not have: the declarations say what is there.
		instead, _ := inspect.Alternative(name[1])
		return instead
	}
	return ""
}
