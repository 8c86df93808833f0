package toolchain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/jslex"
	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/sha256hex"
	"github.com/stilehost/stile/internal/tserase"
)

const (
	maxTransform     = 256 << 10 // bytes of a source
	maxTransformTime = 5 * time.Second
	maxTransformWork = 2 * maxTransformTime // processor time, by estimate
)

// Evaluator runs extensions without building them. Each call brings its source, which is evaluated in a fresh instance of
// one shared component. It is safe for concurrent use. Close it, or the host.
type Evaluator struct {
	component *host.Component
	wasm      []byte
	bundler   []string // of Options
}

// Evaluator returns an [Evaluator] for sources whose env has these bindings, as in [Source]. If bindings is nil, sources can
// use all interfaces that the host knows. Code for which [PartsOf] returns true needs an evaluator with parts.
func (t *Toolchain) Evaluator(ctx context.Context, bindings map[string]string, parts Parts) (*Evaluator, error) {
	return t.newEvaluator(ctx, bindings, nil, parts)
}

// EvaluatorWith is [Toolchain.Evaluator] for programs that import packages. The entry of the source is a [PackagesModule]: it is bundled and
// evaluated once, without any capability, and all calls find the packages in their image. [BodyImports] makes code use them. Errors
// that come from the packages are those of [Toolchain.Build].
func (t *Toolchain) EvaluatorWith(ctx context.Context, bindings map[string]string, packages Source, parts Parts) (*Evaluator, error) {
	b, err := t.bundleOnce(ctx, packages)
	if err != nil {
		return nil, err
	}
	return t.newEvaluator(ctx, bindings, b, parts || Parts(len(partsFor(b.Uses)) > 0))
}

func (t *Toolchain) newEvaluator(ctx context.Context, bindings map[string]string, packages *bundled, parts Parts) (*Evaluator, error) {
	wasm, err := t.assembleEvaluator(ctx, bindings, packages, parts)
	if err != nil {
		return nil, err
	}
	c, err := t.host.Load(ctx, wasm)
	if err != nil {
		return nil, err
	}
	return &Evaluator{c, wasm, t.bundler}, nil
}

func (t *Toolchain) assembleEvaluator(ctx context.Context, bindings map[string]string, packages *bundled, with Parts) ([]byte, error) {
	world, err := t.world(interfacesOf(bindings), func(string) bool { return true })
	if err != nil {
		return nil, err
	}
	world.Exports = append(world.Exports, t.host.WIT().Interface(abi.ExtensionEvaluator))
	linkage, descriptor, err := link(world, bindings, "", "")
	if err != nil {
		return nil, err
	}
	base, err := t.baseDigest(ctx, baseEvaluator)
	if err != nil {
		return nil, err
	}
	var wanted []part
	if with {
		wanted = parts // all of them, so that there are two components for the same bindings and not one for each set of parts
	}
	partsDigest, err := t.partsDigest(ctx, wanted)
	if err != nil {
		return nil, err
	}
	recipe := t.engine + base + partsDigest + sha256hex.Of([]byte(outline(linkage, t.engine))) + sha256hex.Of(descriptor) + sha256hex.Of([]byte(sdk))
	var more [][]byte
	if packages != nil {
		recipe += sha256hex.Of(packages.code)
		more = [][]byte{packages.code}
	}
	key := sha256hex.Of([]byte(recipe))
	return t.cached(ctx, "evaluator", key, func() ([]byte, error) {
		base, images, err := t.baseImage(ctx, baseEvaluator)
		if err != nil {
			return nil, err
		}
		codes, err := t.partCodes(ctx, wanted)
		if err != nil {
			return nil, err
		}
		img, _, err := images.extension(ctx, base, codes, descriptor, []byte(sdk), sdkName, false, more...)
		if err != nil && packages != nil {
			err = explainImage(err, packages.sourceMap, nil)
		}
		if err != nil {
			return nil, err
		}
		meta, err := json.Marshal(Meta{Version: formatVersion, Engine: t.engine, Imports: importNames(linkage)})
		if err != nil {
			return nil, fmt.Errorf("encode meta: %w", err)
		}
		a := &assembly{linkage: linkage, image: img, shape: images.shape, engine: t.engine, custom: []customContent{{MetaSection, meta}}}
		return a.assemble()
	})
}

// Component is the component in which all calls run. Recordings of calls name it, and it replays them.
func (e *Evaluator) Component() *host.Component { return e.component }

// Wasm returns the component as it was loaded.
func (e *Evaluator) Wasm() []byte { return e.wasm }

// Close waits for calls and frees the component.
func (e *Evaluator) Close() error { return e.component.Close() }

// Program is the text of one module.
type Program struct {
	// Name is its name in errors and stacks. Its ending names the language. Default: code.ts.
	Name string
	Text string
	// ImportsFirst says that [BodyImports] has read the import statements with which the code may begin. What the code cannot import
	// elsewhere, it can import there, and errors say so.
	ImportsFirst bool

	above  int  // lines of Text that are not the author's
	erased bool // see erase
}

// Call runs a tool of a TypeScript module in a fresh instance, with env as its only authority, and returns its JSON result.
// Errors are those of [Evaluator.Do].
func (e *Evaluator) Call(ctx context.Context, text, tool string, input []byte, env host.Env) ([]byte, error) {
	r, err := e.Do(ctx, Program{Text: text}, host.Request{Tool: tool, Input: input, Env: env})
	return r.Output, err
}

// Do is Call with every option. r has no code. The module imports only "stile", and its top level runs without any capability, as in
// a build. Errors that the author can correct are a *BuildError. Others are *BusyError and those of [host.Component.Do].
func (e *Evaluator) Do(ctx context.Context, p Program, r host.Request) (host.Result, error) {
	p, err := e.prepare(ctx, p, &r)
	if err != nil {
		return host.Result{}, err
	}
	result, err := e.component.Do(ctx, r)
	return result, e.explain(ctx, p, err)
}

// Start is Do in the background, once the program is transformed: done gets what Do returns, as [host.Component.Start] says.
func (e *Evaluator) Start(ctx context.Context, p Program, r host.Request, done func(host.Result, error)) error {
	p, err := e.prepare(ctx, p, &r)
	if err != nil {
		return err
	}
	err = e.component.Start(ctx, r, func(result host.Result, err error) { done(result, e.explain(ctx, p, err)) })
	return e.explain(ctx, p, err)
}

// explain shows the author's lines in an error of a call.
func (e *Evaluator) explain(ctx context.Context, p Program, err error) error {
	if p.erased && errors.As(err, new(*host.CodeError)) {
		// It is a mistake that esbuild explains better, or else one that only the engine knows.
		if _, mistake := p.transform(ctx, api.SourceMapNone, e.bundler); errors.As(mistake, new(*BuildError)) {
			err = mistake
		}
	}
	return p.lower(p.explain(err))
}

// prepare puts a program into a request. It returns the program with its name.
func (e *Evaluator) prepare(ctx context.Context, p Program, r *host.Request) (Program, error) {
	if p.Name == "" {
		p.Name = "code.ts"
	}
	r.Input = p.wrap(r.Input)
	if p.above > 0 {
		r.Approved = bodyDefinitions
	}
	code, erased, err := p.erase(ctx)
	if err != nil {
		return p, err
	}
	if erased {
		p.erased = true
		r.Code = &host.Code{Text: code, SourceMap: func() []byte { return identityMap(p.Name, code) }}
		return p, nil
	}
	// The source map takes a tenth of the total time, so it is made on demand, or if the code may look at a stack itself.
	kind := api.SourceMapNone
	if p.seesStacks() {
		kind = api.SourceMapExternal
	}
	made, err := p.transform(ctx, kind, e.bundler)
	if err != nil {
		return p, p.lower(err)
	}
	r.Code = &host.Code{Text: p.withStackMap(made), SourceMap: sync.OnceValue(func() []byte {
		code, _ := p.transform(ctx, api.SourceMapExternal, e.bundler) // without the map, stacks have no lines
		return code.Map
	})}
	return p, nil
}

func (p Program) seesStacks() bool {
	return slices.ContainsFunc(stackWords, func(word string) bool { return strings.Contains(p.Text, word) })
}

// maxErased bounds the bytes of code whose types are erased here, and workErased is how long that takes at most, for each of them.
const (
	maxErased  = 64 << 10
	workErased = 500 * time.Nanosecond
)

// erase turns a body whose types are easy to tell from the rest into JavaScript, without esbuild, which takes 0.4 ms for a few lines. Every
// character keeps its place. ok is false for other programs.
func (p Program) erase(ctx context.Context) (code string, ok bool, err error) {
	typed := strings.HasSuffix(p.Name, ".ts")
	if p.above == 0 || len(p.Text) > maxErased || !typed && !strings.HasSuffix(p.Name, ".js") || strings.Contains(p.Text, stackMapMark) || strings.Contains(p.Text, "import.meta") {
		return "", false, nil
	}
	began, body := time.Now(), p.Text[len(bodyHead):len(p.Text)-len(bodyTail)]
	code, ok = tserase.Body(body)
	if err := abi.Work(ctx, min(time.Since(began), time.Duration(len(body))*workErased)); err != nil {
		return "", false, err
	}
	if !ok || !typed && code != body {
		return "", false, nil
	}
	code = bodyHead + code + bodyTail
	if p.seesStacks() {
		places := stackPlaces{Sources: []string{p.Name}, Above: p.above}
		if len(code) != utf8.RuneCountInString(code) {
			places.Mappings = identity(code)
		}
		code += placesLine(places)
	}
	return code, true, nil
}

// identityMap is a source map for code that is as its author wrote it, but for types.
func identityMap(name, code string) []byte {
	text, _ := json.Marshal(map[string]any{"version": 3, "sources": []string{name}, "mappings": identity(code)}) // texts and numbers
	return text
}

// identity maps each token of a text to itself. The engine counts bytes of a line, and the author UTF-16.
func identity(code string) string {
	var mappings []byte
	at, row, column := 0, 0, 0 // of the token before, and its columns in bytes and in UTF-16
	for l := jslex.New(code, false); ; {
		t, more := l.Next()
		if !more {
			return string(mappings)
		}
		between, fromRow, from := code[at:t.Start], row, column
		lines := strings.Count(between, "\n")
		if lines > 0 {
			between, fromRow, from = between[strings.LastIndexByte(between, '\n')+1:], 0, 0
			mappings = append(mappings, strings.Repeat(";", lines)...)
		} else if len(mappings) > 0 {
			mappings = append(mappings, ',')
		}
		nowRow, now := fromRow+len(between), from
		for _, r := range between {
			now += utf16.RuneLen(r)
		}
		for _, delta := range []int{nowRow - fromRow, 0, lines, now - column} {
			mappings = appendVLQ(mappings, delta)
		}
		at, row, column = int(t.Start), nowRow, now
	}
}

// appendVLQ appends a number of a source map.
func appendVLQ(to []byte, n int) []byte {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	u := uint(n) << 1
	if n < 0 {
		u = uint(-n)<<1 | 1
	}
	for ; u > 31; u >>= 5 {
		to = append(to, digits[u&31|32])
	}
	return append(to, digits[u])
}

// stackMapMark begins the line with the source map; see prelude/evaluator.ts.
const stackMapMark = "//# stile:source-map="

// stackPlaces is a source map for the guest. Without mappings, the code's places are those of its source.
type stackPlaces struct {
	Sources  []string `json:"sources"`
	Mappings string   `json:"mappings,omitempty"`
	Above    int      `json:"above,omitempty"`
}

// placesLine is the line with a source map, or nothing if that is too large.
func placesLine(m stackPlaces) string {
	text, err := json.Marshal(m)
	if err != nil || len(text) > maxStackMap {
		return ""
	}
	return "\n" + stackMapMark + string(text)
}

// withStackMap returns the code and, on the line below it, the source map if there is one.
func (p Program) withStackMap(code api.TransformResult) string {
	var m stackPlaces
	if len(code.Map) == 0 || json.Unmarshal(code.Map, &m) != nil {
		return string(code.Code)
	}
	m.Above = p.above
	return string(code.Code) + placesLine(m)
}

// transform turns a program into JavaScript. It returns when ctx ends or after maxTransformTime, even if esbuild is still at work.
// It waits for a slot as builds do. bundler transforms large programs, as it bundles large sources. If ctx is that of a call, the time
// is the call's.
func (p Program) transform(ctx context.Context, sourceMap api.SourceMap, bundler []string) (r api.TransformResult, err error) {
	refuse := func(text string) error { return &BuildError{[]Problem{{File: printable.OneLine(p.Name), Text: text}}} }
	loader := loaders[path.Ext(p.Name)]
	if !isCode(loader) {
		return r, refuse("it is neither TypeScript nor JavaScript")
	}
	if len(p.Text) > maxTransform {
		return r, refuse(fmt.Sprintf("it has more than %d KiB; build it with stile build", maxTransform>>10))
	}
	n := nestingOf(p.Text, loader)
	switch {
	case n.levels > maxNesting:
		return r, refuse(fmt.Sprintf("it is nested deeper than %d levels", maxNesting))
	case n.work > maxTransformWork:
		return r, &BuildError{[]Problem{n.problem(p.Text, p.Name, maxTransformWork)}}
	case bundler == nil && new(flatWork).add(p.Text) > maxTransformWork:
		return r, refuse(tooFlat(maxTransformWork))
	}
	if err := new(folding).admit(p.Text, loader); err != nil {
		return r, refuse("it " + err.Error())
	}
	if err := waitForBuilds(ctx); err != nil {
		return r, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, maxTransformTime, tooLong("parsing takes", maxTransformTime))
	defer cancel()
	type transformed struct {
		result api.TransformResult
		err    error
	}
	done, began := make(chan transformed, 1), time.Now()
	go func() {
		defer building.Give()
		var t transformed
		if bundler != nil && (len(p.Text) > maxInside || n.work > maxInsideWork) {
			t.result, t.err = p.transformOutside(ctx, sourceMap, bundler)
		} else {
			t.result, t.err = p.transformInside(sourceMap)
		}
		done <- t
	}()
	var t transformed
	select {
	case t = <-done:
	case <-ctx.Done():
		t.err = context.Cause(ctx)
	}
	// It may not have had a processor all the time, so it has taken at most the estimate.
	estimate := time.Duration(min(workOfByte*float64(len(p.Text))*float64(len(p.Text)), maxWork)) + n.work
	if err := abi.Work(ctx, min(time.Since(began), estimate)); err != nil {
		return r, err
	}
	if limit, ok := errors.AsType[*resourceError](t.err); ok {
		return r, refuse(limit.text)
	}
	return t.result, t.err
}

// transformInside returns a *BuildError if the program is at fault.
func (p Program) transformInside(sourceMap api.SourceMap) (api.TransformResult, error) {
	r := api.Transform(p.Text+noSourceMap, api.TransformOptions{
		Loader: loaders[path.Ext(p.Name)], Sourcefile: p.Name, Format: api.FormatESModule, Platform: api.PlatformNeutral, Target: api.ESNext,
		Supported: map[string]bool{"decorators": false}, MinifyWhitespace: true, Banner: "//", LegalComments: api.LegalCommentsNone,
		Define: places(), Sourcemap: sourceMap, SourcesContent: api.SourcesContentExclude, JSX: api.JSXAutomatic, LogLevel: api.LogLevelSilent,
	})
	if len(r.Errors) > 0 {
		return api.TransformResult{}, &BuildError{problemsOf(r.Errors)}
	}
	return r, nil
}

func (p Program) transformOutside(ctx context.Context, sourceMap api.SourceMap, bundler []string) (api.TransformResult, error) {
	a, err := outside(ctx, bundler, order{Program: &p, SourceMap: sourceMap}, Source{})
	if err != nil {
		return api.TransformResult{}, err
	}
	return api.TransformResult{Code: a.Code, Map: a.Map}, a.err()
}

// notLoaded is the engine's message about an import that does not exist.
var notLoaded = lazyregexp.New(`^could not load module '(.*)'$`)

// explain shows the author's lines in errors of an import or of the top level.
func (p Program) explain(err error) error {
	problem := Problem{File: printable.OneLine(p.Name)}
	var thrown *host.CodeError
	var failed *host.GuestError
	switch {
	case errors.As(err, &thrown):
		problem.Text = thrown.Error()
		if len(thrown.Frames) > 0 {
			at := thrown.Frames[0]
			problem.Line, problem.Column = at.Line, at.Column
		} else if line, column, name := p.imports(thrown.Failure.Message); name != "" {
			problem.Line, problem.Column, problem.Text = line, column, p.notBuilt(name)
		}
		if thrown.Failure.Message == noRequire {
			problem.Text += p.requireInstead()
		}
	case errors.As(err, &failed):
		if failed.Failure.Message == noRequire {
			failed.Failure.Message += p.requireInstead()
		}
		line, column, name := p.imports(failed.Failure.Message)
		if name == "" {
			if p.ImportsFirst && notLoaded.MatchString(failed.Failure.Message) { // a computed name
				failed.Failure.Message += p.requireInstead()
			}
			return err
		}
		problem.Line, problem.Column, problem.Text = line, column, p.notBuilt(name)
	default:
		return err
	}
	return &BuildError{[]Problem{problem}}
}

// noRequire is the engine's message about code that calls require.
const noRequire = "require is not defined"

// requireInstead is what we add to it.
func (p Program) requireInstead() string {
	if p.ImportsFirst {
		return `: modules are imported by statements that come first in the code, as in import * as module from "name"`
	}
	return ": code that is not built loads no modules; stile build makes a component with all that it imports"
}

func (p Program) notBuilt(name string) string {
	if p.ImportsFirst && !strings.HasSuffix(name, jsxRuntime) {
		return fmt.Sprintf("%q cannot be imported here: import statements come first in the code, as in import * as module from %q", name, name)
	}
	if strings.HasSuffix(name, jsxRuntime) {
		return fmt.Sprintf("JSX needs %q: code that is not built has nothing but %q; stile build makes a component with all that it imports", name, sdkName)
	}
	return fmt.Sprintf("%q cannot be imported: code that is not built has nothing but %q; stile build makes a component with all that it imports", name, sdkName)
}

// jsxRuntime is the end of the name of the module that esbuild imports for JSX.
const jsxRuntime = "/jsx-runtime"

// imports finds the import that is missing according to a message of the engine. The engine omits the ./ of a name.
func (p Program) imports(message string) (line, column int, name string) {
	said := notLoaded.FindStringSubmatch(message)
	if said == nil {
		return 0, 0, ""
	}
	if strings.HasSuffix(said[1], jsxRuntime) {
		return 0, 0, said[1] // the import is esbuild's
	}
	at := regexp.MustCompile("\\b(?:from|import)\\s*\\(?\\s*[\"'`]((?:\\.\\.?/)*" + regexp.QuoteMeta(said[1]) + ")[\"'`]").FindStringSubmatchIndex(p.Text)
	if at == nil {
		return 0, 0, ""
	}
	before := p.Text[:at[2]-1]
	return strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1, p.Text[at[2]:at[3]]
}
