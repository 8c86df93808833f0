package toolchain

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/npmspec"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/turns"
)

// BuildError reports what is wrong with a source, or with the packages that it asks for.
type BuildError struct {
	// Problems has at least one problem, and at most [abi.MaxProblems] of a bundle.
	Problems []Problem
}

// Problem is one thing wrong with a source. Text from the source is shown without control characters.
type Problem struct {
	// File is a path in the source tree.
	File string `json:"file,omitempty"`
	// Line and Column count from 1, columns in characters. 0 means the whole file.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Text says what is wrong, and Fix what to write instead, if known.
	Text string `json:"text"`
	Fix  string `json:"fix,omitempty"`
	// Snippet is the line of the source, shortened around the column, with a second line that points at it.
	Snippet string `json:"snippet,omitempty"`
}

// Error returns each problem with its place and snippet, on several lines.
func (e *BuildError) Error() string {
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		texts[i] = printable.Problem(p.File, p.Line, p.Column, p.Text, p.Fix, p.Snippet)
	}
	return strings.Join(texts, "\n")
}

// BusyError reports a build that waited for others until its context ended, or for a minute. Abandoned builds count until
// they have parsed their current file, which takes about a minute at most.
type BusyError struct {
	// Builds is how many builds are running, which is the maximum. Abandoned builds count.
	Builds int
	// Cause is why the wait ended.
	Cause error
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("waiting for one of %d builds to end (some may be abandoned): %v", e.Builds, e.Cause)
}

// Unwrap returns why the wait ended.

func (e *BusyError) Unwrap() error { return e.Cause }

// bundled is a source as one ES module.
type bundled struct {
	code []byte
	// sourceMap maps the code to the files of the source tree, as JSON, without their content.
	sourceMap []byte
	// files are all files whose content was used, in order of path.
	files []sourceFile

	words func() map[string]bool
}

type sourceFile struct {
	path   string
	sha256 [sha256.Size]byte
}

// Uses says whether a word stands anywhere in the code: as a name, a property or in a string. It finds every use that
// spells the word out, and more.
func (b *bundled) Uses(word string) bool { return b.words()[word] }

var word = lazyregexp.New(`[\pL\p{Nl}$_][\pL\p{Nl}\p{Mn}\p{Mc}\p{Nd}\p{Pc}$]*`)

// wholeWord is a name and nothing else.
var wholeWord = lazyregexp.New(`^[\pL\p{Nl}$_][\pL\p{Nl}\p{Mn}\p{Mc}\p{Nd}\p{Pc}$]*$`)

// MaxSource is the maximum size of all files of a source, packages included, in bytes. Without Options.Bundler, it is 8 MiB.
const MaxSource = 24 << 20

// maxAlone is the maximum without Options.Bundler.
const maxAlone = 8 << 20

const (
	maxFiles   = 4000
	maxSnippet = 160 // characters

	maxBundleTime = 30 * time.Second
	// maxBundleWork bounds the processor time that parsing all files may take, by an estimate that is too high for most code.
	maxBundleWork = 2 * maxBundleTime
)

// esbuild cannot be stopped while it parses a file. So a build has its slot until all its work has ended, and half of the processors are
// never used by builds.
var (
	maxBuilds = max(1, runtime.GOMAXPROCS(0)/2)
	building  = turns.NewNamed("builds", maxBuilds)
)

// The namespaces of module names in the bundle. None is "file", because a name in that namespace is a path on the machine's own
// disk.
const (
	inSource = "source"
	inSDK    = "stile"
	inNode   = "node"
	inEmpty  = "empty"
	inAbsent = "absent"
)

// sdkName is the module that extensions import. The prelude provides it.
const sdkName = "stile"

const sdk = `const sdk = globalThis[Symbol.for("stile.sdk")];
export const { extension, CapabilityError, DeniedError } = sdk;
export const image = (data, mimeType) => sdk.part("image", data, mimeType);
export const audio = (data, mimeType) => sdk.part("audio", data, mimeType);
export const file = (data, name, mimeType) => sdk.part("file", data, mimeType, { name });
export const content = (...parts) => ({
  content: parts.flatMap((one) => {
    if (typeof one === "string") return [{ type: "text", text: one }];
    if (Array.isArray(one?.content)) return one.content;
    throw new TypeError("content: texts are wanted, and what image, audio and file return");
  }),
});
`

// partialSDK is the module of a source with Absent. A tool that extension() refuses does not hide the others: its definition says why.
var partialSDK = strings.Replace(sdk, "{ extension, ", "{ ", 1) + `export const extension = (given) => {
  const tools = {};
  for (const [name, tool] of Object.entries(given.tools)) {
    try {
      sdk.extension({ tools: { [name]: tool } });
      tools[name] = tool;
    } catch (error) {
      const known = /^[a-z][a-z0-9_]{0,63}$/.test(name) ? name : "unnamed_" + Object.keys(tools).length;
      let why = error.message;
      try {
        JSON.stringify(tool);
      } catch {
        why = ""; // a part of it is not there
      }
      tools[known] = { description: "` + refusedTool + `" + why, run() {} };
    }
  }
  return sdk.extension({ ...given, tools });
};
`

// refusedTool begins the description of a tool that extension() refused.
const refusedTool = "stile refused this tool: "

// RefusedTool returns why extension() refused a tool, for a definition of a component that was made with Source.Absent. It is empty if that may
// follow from what is not there.
func RefusedTool(d abi.Definition) (why string, refused bool) {
	if why, refused = strings.CutPrefix(d.Description, refusedTool); !refused {
		return "", false
	}
	return why, true
}

// loaders say what each kind of file is.
var loaders = map[string]api.Loader{
	".ts": api.LoaderTS, ".mts": api.LoaderTS, ".cts": api.LoaderTS, ".tsx": api.LoaderTSX,
	".js": api.LoaderJS, ".mjs": api.LoaderJS, ".cjs": api.LoaderJS, ".jsx": api.LoaderJSX,
	".json": api.LoaderJSON, ".txt": api.LoaderText, ".md": api.LoaderText,
}

// bundle makes one ES module of a source, and fails with a *BuildError if the source is at fault. It resolves names only in the
// source tree, and neither a tsconfig.json nor the environment changes the result: the same source gives the same bytes. It returns
// when ctx ends or bundling takes 30 seconds, even if esbuild is still at work on a file. It waits for other builds, and fails
// with a *BusyError if it got no turn in a minute. program, the command line of Options.Bundler, bundles large sources. It may be
// nil.
func bundle(ctx context.Context, source Source, program []string) (*bundled, error) {
	b := newBundler(source, program)
	outputs, err := b.run(ctx)
	if err != nil {
		return nil, err
	}
	return b.result(outputs)
}

func newBundler(source Source, program []string) *bundler {
	b := &bundler{source: source, program: program, time: maxBundleTime, parsing: make(chan struct{}, 1)}
	b.resolver = resolver{files: source.FS, read: b.read, packages: make(map[string]*packageJSON), pages: make(map[string]string), lacking: make(map[string]bool)}
	b.begin()
	return b
}

// begin prepares a run of esbuild.
func (b *bundler) begin() {
	b.files, b.unresolved, b.guarded = make(map[string][sha256.Size]byte), make(map[string]string), make(map[string]map[string]bool)
	b.size, b.extraNesting, b.work, b.loaded, b.flat, b.folding = 0, 0, 0, 0, flatWork{}, folding{}
	b.stars = stars{said: map[string]map[string]int{}, found: map[string][]string{}, names: map[string]int{}}
}

// run is what [bundle] promises; it is called once.
func (b *bundler) run(ctx context.Context) ([]api.OutputFile, error) {
	entry := b.source.Entry
	if !fs.ValidPath(entry) {
		return nil, &BuildError{[]Problem{{Text: fmt.Sprintf("the entry %q is not a path in the source tree", entry)}}}
	}
	if !isCode(loaders[path.Ext(entry)]) {
		return nil, &BuildError{[]Problem{{File: printable.OneLine(entry), Text: "the entry is neither TypeScript nor JavaScript; give code in another language as a component (.wasm)"}}}
	}
	if err := waitForBuilds(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, b.time, tooLong("bundling takes", b.time))
	defer cancel()
	type built struct {
		outputs []api.OutputFile
		err     error
	}
	done := make(chan built, 1)
	go func() {
		defer building.Give()
		defer b.parses.Wait()
		outputs, err := b.bundle(ctx)
		if errors.Is(err, errInside) {
			outputs, err = b.bundleOutside(ctx)
		}
		done <- built{outputs, err}
	}()
	var result built
	select {
	case result = <-done:
	case <-ctx.Done():
	}
	err := result.err
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if limit, ok := errors.AsType[*resourceError](err); ok {
		return nil, &BuildError{[]Problem{{File: printable.OneLine(entry), Text: limit.text}}}
	}
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	return result.outputs, err
}

// bundle bundles in this process. It returns when all work except that of b.parses has ended, which may be long after ctx has. The
// error is errInside if the source turns out to need another process.
func (b *bundler) bundle(ctx context.Context) ([]api.OutputFile, error) {
	b.ctx = ctx
	build, failure := api.Context(b.options())
	if failure != nil {
		return nil, fmt.Errorf("bundle: %w", failure)
	}
	defer build.Dispose()
	defer context.AfterFunc(ctx, build.Cancel)() // takes effect between two files
	result := build.Rebuild()
	for range maxRetries {
		if b.outgrown || b.tooMuch != nil || ctx.Err() != nil || !b.noteLacking(result.Errors) {
			break
		}
		b.begin()
		result = build.Rebuild()
	}
	switch {
	case b.outgrown:
		return nil, errInside
	case b.tooMuch != nil:
		return nil, b.tooMuch
	case len(result.Errors) > 0:
		return nil, &BuildError{b.problems(result.Errors)}
	}
	return result.OutputFiles, nil
}

// maxRetries is how often a source is bundled again because files of packages for browsers lack what others import from them.
const maxRetries = 3

// noMatchingExport is esbuild's message about a name that a file lacks.
var noMatchingExport = lazyregexp.New(`^No matching export in "` + inSource + `:([^"]+)" for import `)

// noteLacking finds files of packages that lack what others import from them: the package has another file for servers, which has it. It returns false if
// there are no more of them.
func (b *bundler) noteLacking(messages []api.Message) bool {
	more := false
	for _, m := range messages {
		if found := noMatchingExport.FindStringSubmatch(m.Text); found != nil && npmspec.InPackage(found[1]) {
			more = b.resolver.noteLacking(found[1]) || more
		}
	}
	return more
}

// bundleOutside has the program bundle.
func (b *bundler) bundleOutside(ctx context.Context) ([]api.OutputFile, error) {
	a, err := outside(ctx, b.program, order{Entry: b.source.Entry, Imports: b.imported != nil, Absent: b.source.Absent}, b.source)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.files, b.imported, b.partial = a.Files, a.Imported, a.Partial
	b.mu.Unlock()
	return a.Outputs, a.err()
}

// maxWait is how long a build waits for a slot: for the longest build, and as long again for those of others whose turn is before.
const maxWait = 2 * maxBundleTime

// waitForBuilds takes one of the slots for builds. They are taken in turns, by whom ctx is for.
func waitForBuilds(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	err := building.Take(ctx)
	if ctx.Err() != nil {
		return &BusyError{maxBuilds, err}
	}
	if err != nil {
		return fmt.Errorf("take a turn to build: %w", err)
	}
	return nil
}

// bundler is the state of one build. esbuild calls it from many goroutines.
type bundler struct {
	folding  folding
	stars    stars
	ctx      context.Context
	source   Source
	program  []string      // the command line of Options.Bundler
	time     time.Duration // the limit
	resolver resolver

	// parsing has room for one parse. parses counts those that have not ended.
	parsing chan struct{}
	parses  sync.WaitGroup

	mu    sync.Mutex
	files map[string][sha256.Size]byte
	size  int64
	// extraNesting adds up the levels of all files that are over usualNesting.
	extraNesting int
	// work adds up the time to parse all files. tooMuch is the first file that exceeded the bound.
	work    time.Duration
	tooMuch *BuildError
	// loaded and flat add up what has been admitted. outgrown says that it is too much for this process.
	loaded   int
	flat     flatWork
	outgrown bool
	// guarded holds what a file requires within try, by file.
	guarded map[string]map[string]bool
	// unresolved holds why a require failed, by file and esbuild's own words for it.
	unresolved map[string]string
	// imported holds the packages that the source's own files import, if those are requested. It is nil in a build.
	imported map[string]bool
	// partial says that the bundle lacks a module that stands in for one of node's, because the source came without these.
	partial bool
}

func (b *bundler) options() api.BuildOptions {
	return api.BuildOptions{
		Bundle:            true,
		EntryPoints:       []string{"entry"}, // stands for source.Entry, see onResolve
		Inject:            []string{laterName},
		AbsWorkingDir:     "/stile", // need not exist: only relative output names are made with it
		Outfile:           "/stile/bundle.js",
		Format:            api.FormatESModule,
		Platform:          api.PlatformNeutral,
		Target:            api.ESNext,
		Supported:         map[string]bool{"decorators": false},
		TreeShaking:       api.TreeShakingTrue,
		MinifyWhitespace:  true,                          // else deep nesting makes the output grow with its square
		Banner:            map[string]string{"js": "//"}, // on line 1 the engine's columns are off by one now and then
		LegalComments:     api.LegalCommentsNone,
		Sourcemap:         api.SourceMapExternal,
		SourcesContent:    api.SourcesContentExclude,
		TsconfigRaw:       "{}",
		Define:            defines,
		LogLevel:          api.LogLevelSilent,
		JSX:               api.JSXAutomatic,
		Plugins:           []api.Plugin{{Name: "stile", Setup: b.setup}},
		IgnoreAnnotations: false,
	}
}

// defines replace what packages ask about an environment at build time, so that code for others can be left out. What is asked in the image
// gets the same answers from prelude/parts/process.ts.
var defines = map[string]string{
	"global": "globalThis", "process.env.NODE_ENV": `"production"`, "process.env.NODE_DEBUG": "undefined", "process.env.READABLE_STREAM": "undefined",
	"process.versions.node.split": splitVersion, "process.versions.node.match": matchVersion, // of code that does not ask whether this is Node.js
	"process.platform": `"browser"`, "process.browser": "true", "process.version": `""`,
	"import.meta.url": `"file:///index.js"`, "import.meta.dirname": `"/"`, "import.meta.filename": `"/index.js"`, "__dirname": `"/"`, "__filename": `"/index.js"`,
}

// places are those of defines that say where code is, for code that is not bundled.
func places() map[string]string {
	found := make(map[string]string)
	for name, text := range defines {
		if strings.HasPrefix(name, "import.meta.") || strings.HasPrefix(name, "__") {
			found[name] = text
		}
	}
	return found
}

func (b *bundler) setup(build api.PluginBuild) {
	build.OnResolve(api.OnResolveOptions{Filter: ".*"}, b.onResolve)
	build.OnLoad(api.OnLoadOptions{Filter: ".*"}, b.onLoad)
}

// onResolve answers every import. It never leaves one to esbuild's own resolver, which would look on the disk, except a require that
// may be inside a try which was not found: esbuild lets that one fail at run time, and looks nowhere because files have no folder on the disk.
func (b *bundler) onResolve(args api.OnResolveArgs) (api.OnResolveResult, error) {
	if err := context.Cause(b.ctx); err != nil {
		return api.OnResolveResult{}, err
	}
	if args.Kind == api.ResolveEntryPoint && path.Base(args.Path) == laterName {
		return api.OnResolveResult{Path: laterName, Namespace: inAbsent, SideEffects: api.SideEffectsFalse}, nil
	}
	if args.Kind == api.ResolveEntryPoint {
		return api.OnResolveResult{Path: b.source.Entry, Namespace: inSource}, nil
	}
	if args.Path == sdkName {
		return api.OnResolveResult{Path: sdkName, Namespace: inSDK, SideEffects: api.SideEffectsFalse}, nil
	}
	if args.Namespace == inNode {
		return b.resolveNode(args)
	}
	if args.Namespace != inSource {
		return api.OnResolveResult{}, fmt.Errorf("%q: only files that are bundled can be named", args.Path)
	}
	found, err := b.resolver.resolve(args.Path, args.Importer, args.Kind == api.ResolveJSRequireCall)
	if b.noteImport(args.Path, args.Importer) && err != nil {
		return api.OnResolveResult{Path: args.Path, External: true}, nil
	}
	if err != nil && b.leaves(args.Importer) {
		if absent, ok := b.absent(args, err); ok {
			return absent, nil
		}
	}
	if err != nil {
		if _, refused := errors.AsType[*refusedError](err); refused || args.Kind != api.ResolveJSRequireCall {
			return api.OnResolveResult{}, err
		}
		if b.isGuarded(args) {
			if absent, ok := b.absent(args, err); ok {
				return absent, nil
			}
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.unresolved[args.Importer+": "+fmt.Sprintf("Could not resolve %q", args.Path)] = err.Error()
		return api.OnResolveResult{}, nil
	}
	if found.node {
		return b.foundNode(found.path, args.Kind), nil
	}
	if err := b.stars.resolve(args.Importer, args.Path, found.path); err != nil {
		return api.OnResolveResult{}, fmt.Errorf("%s %w", args.Importer, err)
	}
	result := api.OnResolveResult{Path: found.path, Namespace: inSource}
	if found.empty {
		result.Namespace = inEmpty
	}
	if found.pure {
		result.SideEffects = api.SideEffectsFalse
	}
	return result, nil
}

func (b *bundler) onLoad(args api.OnLoadArgs) (api.OnLoadResult, error) {
	switch args.Namespace {
	case inSDK:
		text := sdk
		if b.source.Absent {
			text = partialSDK
		}
		return api.OnLoadResult{Contents: &text, Loader: api.LoaderJS}, nil
	case inNode:
		return b.loadNode(args.Path)
	case inAbsent:
		if args.Path == laterName {
			text := laterCode
			return api.OnLoadResult{Contents: &text, Loader: api.LoaderJS}, nil
		}
		absent, ok := args.PluginData.(absentModule)
		if !ok {
			return api.OnLoadResult{}, errors.New("only files of the source tree can be imported")
		}
		text := absent.code()
		return api.OnLoadResult{Contents: &text, Loader: api.LoaderJS}, nil
	case inEmpty:
		text := ""
		return api.OnLoadResult{Contents: &text, Loader: api.LoaderEmpty}, nil
	case inSource:
	default:
		return api.OnLoadResult{}, errors.New("only files of the source tree can be imported")
	}
	loader, err := loaderOf(args.Path, args.With)
	if err != nil {
		return api.OnLoadResult{}, err
	}
	data, err := b.read(args.Path, b.most())
	if err != nil {
		return api.OnLoadResult{}, err
	}
	text := string(data)
	for _, admit := range []func(name, text string, loader api.Loader) error{b.admitSize, b.admitNesting, b.admitFlat} {
		if err := admit(args.Path, text, loader); err != nil {
			return b.refused(err)
		}
	}
	if isCode(loader) {
		if err := b.folding.admit(text, loader); err != nil {
			return api.OnLoadResult{}, fmt.Errorf("%s %w", args.Path, err)
		}
		if err := b.stars.load(args.Path, text); err != nil {
			return api.OnLoadResult{}, fmt.Errorf("%s %w", args.Path, err)
		}
		text = plainRequire(text)
		problems, err := b.computedImports(text, loader)
		if err != nil {
			return api.OnLoadResult{}, err
		}
		if b.leaves(args.Path) {
			text, problems = failLater(text, problems)
		}
		b.noteGuards(args.Path, text)
		if len(problems) > 0 {
			for i := range problems {
				problems[i].Location.File = args.Path
			}
			return api.OnLoadResult{Errors: problems}, nil
		}
		text += noSourceMap
	}
	return api.OnLoadResult{Contents: &text, Loader: loader}, nil
}

// refused is a file that esbuild does not get to see.
func (b *bundler) refused(err error) (api.OnLoadResult, error) {
	bad, ok := errors.AsType[*BuildError](err)
	if !ok {
		return api.OnLoadResult{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tooMuch == nil {
		b.tooMuch = bad
	}
	return api.OnLoadResult{}, err
}

// noSourceMap ends code. The last such comment counts, and one with this scheme makes esbuild read no source map of the
// author's, from wherever on the disk that might be.
const noSourceMap = "\n//# sourceMappingURL=stile:none"

func isCode(loader api.Loader) bool {
	return loader == api.LoaderTS || loader == api.LoaderTSX || loader == api.LoaderJS || loader == api.LoaderJSX
}

// loaderOf says how a file is read, from its extension and the attributes of the import.
func loaderOf(name string, with map[string]string) (api.Loader, error) {
	loader, known := loaders[path.Ext(name)]
	for key, value := range with {
		switch {
		case key == "type" && value == "text":
			return api.LoaderText, nil
		case key == "type" && value == "bytes":
			return api.LoaderBinary, nil
		case key != "type" || value != "json" || loader != api.LoaderJSON:
			return 0, fmt.Errorf("%s cannot be imported with %s %q: there are text, bytes and, for JSON files, json", name, key, value)
		}
	}
	if !known {
		return 0, fmt.Errorf("%s cannot be imported: it is not TypeScript, JavaScript, JSON or text; with { type: \"text\" } or { type: \"bytes\" } any file can", name)
	}
	return loader, nil
}

// mayCompute matches all code in which a call of import or require could stand, however it is written.
var mayCompute = lazyregexp.New(`\bimport[\s\v\x{80}-\x{10FFFF}]*[(/.]|require|\\u`)

// computedImports finds calls of import and require whose argument is not a string. They cannot be bundled, and esbuild would search
// the machine's own disk for files that fit, so it must never see one.
//
// It parses all TypeScript, which is slow, before a build does: one file at a time, so that an abandoned build keeps only one
// processor busy.
func (b *bundler) computedImports(text string, loader api.Loader) ([]api.Message, error) {
	if loader != api.LoaderTS && loader != api.LoaderTSX && !mayCompute.MatchString(text) {
		return nil, nil
	}
	select {
	case b.parsing <- struct{}{}:
	case <-b.ctx.Done():
		return nil, context.Cause(b.ctx)
	}
	parsed := make(chan []api.Message, 1)
	b.parses.Go(func() {
		parsed <- findComputedImports(text, loader)
		<-b.parsing
	})
	select {
	case found := <-parsed:
		return found, nil
	case <-b.ctx.Done():
		return nil, context.Cause(b.ctx)
	}
}

func findComputedImports(text string, loader api.Loader) []api.Message {
	result := api.Transform(text, api.TransformOptions{
		Loader: loader, TsconfigRaw: "{}", Target: api.ESNext, Format: api.FormatESModule, Define: defines, LogLevel: api.LogLevelSilent,
		LogOverride: map[string]api.LogLevel{"unsupported-dynamic-import": api.LogLevelError, "unsupported-require-call": api.LogLevelError},
	})
	var found []api.Message
	for _, m := range result.Errors {
		if m.ID == "unsupported-dynamic-import" || m.ID == "unsupported-require-call" && strings.HasSuffix(m.Text, "not a string literal") {
			m.Text = "what is imported must be written as a string, so that it can be bundled"
			found = append(found, m)
		}
	}
	return found
}

// most is how many bytes the files of the source may have together. The helper process has a large source.
func (b *bundler) most() int64 {
	if b.program == nil && !b.source.Large {
		return maxAlone
	}
	return MaxSource
}

// read reads a file of the source within the limits of the whole source.
func (b *bundler) read(name string, limit int64) ([]byte, error) {
	if err := context.Cause(b.ctx); err != nil {
		return nil, err
	}
	data, err := readAtMost(b.source.FS, name, limit)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", name, reason(err))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, again := b.files[name]; !again {
		b.size += int64(len(data))
	}
	b.files[name] = sha256.Sum256(data)
	if b.size > b.most() {
		return nil, fmt.Errorf("the source with its packages is larger than %d MiB", b.most()>>20)
	}
	if len(b.files) > maxFiles {
		return nil, fmt.Errorf("the source with its packages has more than %d files", maxFiles)
	}
	return data, nil
}

// admitSize refuses what is too large for this process, if there is another one.
func (b *bundler) admitSize(_, text string, _ api.Loader) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.loaded += len(text)
	b.outgrown = b.outgrown || b.program != nil && b.loaded > maxInside
	if b.outgrown {
		return errInside
	}
	return nil
}

// admitFlat refuses what may take too long for its size, if there is no other process.
func (b *bundler) admitFlat(name, text string, loader api.Loader) error {
	if b.program != nil || b.source.Large || loader == api.LoaderText || loader == api.LoaderBinary {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.flat.add(text) > maxBundleWork {
		return &BuildError{[]Problem{{File: printable.OneLine(name), Text: tooFlat(maxBundleWork)}}}
	}
	return nil
}

// admitNesting refuses code that would take too much stack or time to parse.
func (b *bundler) admitNesting(name, text string, loader api.Loader) error {
	n := nestingOf(text, loader)
	if n.levels > maxNesting && n.unclear != "" {
		return fmt.Errorf("%s is too large to have %s, because its nesting is unclear after that", name, n.unclear)
	}
	if n.levels > maxNesting {
		return fmt.Errorf("%s is nested deeper than %d levels", name, maxNesting)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.extraNesting += max(0, n.levels-usualNesting)
	if b.extraNesting > maxExtraNesting {
		return fmt.Errorf("%s is deeply nested, like too many files before it", name)
	}
	b.work += n.work
	if b.work > maxBundleWork {
		return &BuildError{[]Problem{n.problem(text, name, maxBundleWork)}}
	}
	if b.program != nil && b.work > maxInsideWork {
		b.outgrown = true
		return errInside
	}
	return nil
}

func (b *bundler) result(outputs []api.OutputFile) (*bundled, error) {
	out := &bundled{}
	for _, file := range outputs {
		if !strings.HasSuffix(file.Path, ".map") {
			out.code = file.Contents
			continue
		}
		var m struct {
			Version  int      `json:"version"`
			Sources  []string `json:"sources"`
			Names    []string `json:"names"`
			Mappings string   `json:"mappings"`
		}
		if err := json.Unmarshal(file.Contents, &m); err != nil {
			return nil, fmt.Errorf("bundle: source map: %w", err)
		}
		for i, name := range m.Sources {
			if m.Sources[i] = strings.TrimPrefix(name, inSource+":"); strings.HasPrefix(name, inAbsent+":") {
				m.Sources[i] = "" // no file: stacks go on with who uses it
			}
		}
		var err error
		if out.sourceMap, err = json.Marshal(m); err != nil {
			return nil, fmt.Errorf("bundle: source map: %w", err)
		}
	}
	for name, digest := range b.files {
		out.files = append(out.files, sourceFile{name, digest})
	}
	out.arrange()
	return out, nil
}

// arrange sorts the files and finds the words on demand.
func (b *bundled) arrange() {
	slices.SortFunc(b.files, func(a, b sourceFile) int { return strings.Compare(a.path, b.path) })
	b.words = sync.OnceValue(func() map[string]bool {
		words := make(map[string]bool)
		for _, w := range word.FindAll(b.code, -1) {
			words[string(w)] = true
		}
		return words
	})
}

func (b *bundler) problems(messages []api.Message) []Problem {
	for i, m := range messages {
		if m.Location == nil {
			continue
		}
		file := strings.TrimPrefix(m.Location.File, inSource+":")
		if text, ok := b.unresolved[file+": "+m.Text]; ok {
			messages[i].Text = text
		}
	}
	return problemsOf(messages)
}

// problemsOf are the first of what esbuild found wrong.
func problemsOf(messages []api.Message) []Problem {
	var problems []Problem
	for _, m := range messages[:min(len(messages), abi.MaxProblems)] {
		p := Problem{Text: m.Text}
		if at := m.Location; at != nil {
			file := strings.TrimPrefix(at.File, inSource+":")
			column := min(at.Column, len(at.LineText))
			p.File, p.Line, p.Column = printable.OneLine(file), at.Line, utf8.RuneCountInString(at.LineText[:column])+1
			p.Snippet = Snippet(at.LineText, p.Column)
			if at.LineText == noSourceMap[1:] { // what the author wrote ended before
				p.Line, p.Column, p.Snippet = at.Line-1, 1, ""
			}
		}
		if p.Text == noJSX {
			p.Text += "; JSX needs a name that ends in .jsx or .tsx"
		}
		p.Text = printable.OneLine(strings.ReplaceAll(p.Text, `"`+inSource+":", `"`))
		problems = append(problems, p)
	}
	return problems
}

// noJSX is esbuild's message about JSX in a plain JavaScript file.
const noJSX = "The JSX syntax extension is not currently enabled"

// Snippet shows a line around a column, counted in characters from 1, with a mark under it. It is printable.
func Snippet(line string, column int) string {
	text := []rune(line)
	at := min(column-1, len(text))
	from := max(0, at-maxSnippet/2)
	before := strings.TrimLeft(printable.OneLine(string(text[from:at])), " ")
	after := printable.OneLine(string(text[at:min(len(text), from+maxSnippet)]))
	return before + after + "\n" + strings.Repeat(" ", utf8.RuneCountInString(before)) + "^"
}
