// Package toolchain makes components from TypeScript, JavaScript and core modules. It bundles a TypeScript source, evaluates
// the bundle once in a JavaScript engine, and keeps the engine's memory. The component holds that memory and the bindings of
// its world, and imports the engine, which all components share. Everything is deterministic: the same source gives the same
// bytes.
package toolchain

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/absent"
	"github.com/stilehost/stile/internal/bounded"
	"github.com/stilehost/stile/internal/cache"
	"github.com/stilehost/stile/internal/jslex"
	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/npmspec"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/sha256hex"
)

// Options configure a [Toolchain]. The zero value works, without a cache.
type Options struct {
	// CacheDir keeps the engine, images and components. KeyDir holds the key that authenticates them. Both can be the host's. If
	// either is empty, nothing is kept, and each New obtains the engine again.
	CacheDir, KeyDir string
	// Engine names a folder or zip file that holds node_modules as `npm ci` makes it from toolchain/engine/package-lock.json,
	// for machines without npm. Its digest is checked. Default: npm is run.
	Engine string
	// Bundler is the command line of a program that only calls [Bundle]. Such a process bundles sources of more than 32 KiB,
	// packages included, and deeply nested sources, under limits of the operating system, because nothing else can stop the bundler.
	// Default: this process bundles everything, and refuses sources that can take longer than a minute by estimate.
	Bundler []string
	// Progress, when not nil, is called for steps that take longer than a second, such as obtaining the engine.
	Progress func(message string)
	// Logger receives events that no caller sees. Default: nothing is logged.
	Logger *slog.Logger
}

// Toolchain builds extensions for one host. It is safe for concurrent use. Its creator closes it.
type Toolchain struct {
	host   *host.Host
	cache  *cache.Cache // nil if nothing is kept
	log    *slog.Logger
	obtain engineOptions
	engine string // the name under which the host offers the engine

	bundler []string // of Options

	// The engine itself, which only what no cache holds is made of:
	wholeMu sync.Mutex
	modules fs.FS
	whole   *wholeEngine

	mu sync.Mutex // before wholeMu
	// What is made on first use:
	images *imager
	bases  map[baseKind]*baseImage
	parts  map[string]partCode // by name
}

// New obtains the engine, adds it to the host and makes the base image. Without a cache, that takes a few seconds and needs npm. With a
// cache that this program used before, New only maps the engine's code: the first build that is not cached makes the rest, or takes it
// from the cache.
func New(ctx context.Context, h *host.Host, o Options) (*Toolchain, error) {
	t := &Toolchain{
		host: h, bundler: slices.Clone(o.Bundler), obtain: engineOptions{file: o.Engine, progress: o.Progress}, log: o.Logger,
		bases: map[baseKind]*baseImage{}, parts: map[string]partCode{},
	}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	if o.CacheDir != "" && o.KeyDir != "" {
		var err error
		if t.cache, err = cache.Open(o.CacheDir, o.KeyDir, o.Logger); err != nil {
			return nil, fmt.Errorf("open cache: %w", err)
		}
	}
	if err := t.prepare(ctx); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

func (t *Toolchain) prepare(ctx context.Context) error {
	name, err := t.recalled(ctx, "engine", func() (string, error) {
		whole, err := t.wholeEngine(ctx)
		if err != nil {
			return "", err
		}
		return host.ModuleName(whole.shared), nil
	})
	if err != nil {
		return err
	}
	t.engine = name
	if t.cache != nil {
		t.cache.Renew("engine", engineDigest) // is not read, and is hard to get again
	}
	offered := make(chan error, 1)
	go func() {
		name, wasm := t.Engine()
		offered <- t.host.AddModuleNamed(ctx, name, wasm)
	}()
	_, err = t.baseDigest(ctx, basePlain)
	if err := <-offered; err != nil {
		return fmt.Errorf("offer engine: %w", err)
	}
	return err
}

// wholeEngine obtains the engine and rewrites it, once.
func (t *Toolchain) wholeEngine(ctx context.Context) (*wholeEngine, error) {
	t.wholeMu.Lock()
	defer t.wholeMu.Unlock()
	if t.whole != nil {
		return t.whole, nil
	}
	e, err := t.obtained(ctx)
	if err != nil {
		return nil, err
	}
	t.whole, err = newWholeEngine(e.wasm)
	return t.whole, err
}

// engineModules is the folder node_modules that comes with the engine.
func (t *Toolchain) engineModules(ctx context.Context) (fs.FS, error) {
	t.wholeMu.Lock()
	defer t.wholeMu.Unlock()
	if t.modules != nil {
		return t.modules, nil
	}
	e, err := t.obtained(ctx)
	if err != nil {
		return nil, err
	}
	return e.modules, nil
}

// obtained obtains the engine. The caller holds t.wholeMu.
func (t *Toolchain) obtained(ctx context.Context) (*engineFiles, error) {
	e, err := obtainEngine(ctx, t.cached, t.obtain)
	if err == nil {
		t.modules = e.modules
	}
	return e, err
}

// imager makes images.
func (t *Toolchain) imager(ctx context.Context) (*imager, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.imagerLocked(ctx)
}

// imagerLocked is imager for callers that hold t.mu.
func (t *Toolchain) imagerLocked(ctx context.Context) (*imager, error) {
	if t.images != nil {
		return t.images, nil
	}
	var known struct {
		Shape  engineShape
		Digest string
	}
	text, err := t.recalled(ctx, "shape of the engine", func() (string, error) {
		whole, err := t.wholeEngine(ctx)
		if err != nil {
			return "", err
		}
		known.Shape, known.Digest = whole.engineShape, whole.digest
		text, err := json.Marshal(known)
		return string(text), err
	})
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(text), &known); err != nil {
		return nil, fmt.Errorf("read the shape of the engine: %w", err)
	}
	t.images, err = newImager(ctx, known.Shape, known.Digest, t.wholeEngine, func(ctx context.Context, kind, key string, build func() ([]byte, error)) ([]byte, error) {
		return t.cached(ctx, kind, key, func() ([]byte, error) {
			if t.obtain.progress != nil && kind == imageEngine {
				t.obtain.progress("preparing the JavaScript engine, once")
			}
			return build()
		})
	}, imageLimits{})
	return t.images, err
}

// baseImage is the image that images of a kind start from, and what makes them of it.
func (t *Toolchain) baseImage(ctx context.Context, kind baseKind) (*baseImage, *imager, error) {
	images, err := t.imager(ctx)
	if err != nil {
		return nil, nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if base := t.bases[kind]; base != nil {
		return base, images, nil
	}
	l, err := kind.layout()
	if err != nil {
		return nil, nil, err
	}
	prelude := sync.OnceValues(func() (string, error) {
		if _, err := t.wholeEngine(ctx); err != nil {
			return "", err
		}
		return preludeSource(t.modules, kind.net())
	})
	key, err := t.recalled(ctx, fmt.Sprintf("key of the base image, %s", kind), func() (string, error) {
		text, err := prelude()
		if err != nil {
			return "", err
		}
		return images.baseKey(text, l)
	})
	if err != nil {
		return nil, nil, err
	}
	// The image serves later builds too, so it is not given up with this one.
	made, err := images.base(context.WithoutCancel(ctx), key, prelude, l)
	if err != nil {
		return nil, nil, err
	}
	t.bases[kind] = made
	return made, images, nil
}

// baseDigest is the digest of a base image, which need not be at hand.
func (t *Toolchain) baseDigest(ctx context.Context, kind baseKind) (string, error) {
	return t.recalled(ctx, fmt.Sprintf("base image, %s", kind), func() (string, error) {
		base, _, err := t.baseImage(ctx, kind)
		if err != nil {
			return "", err
		}
		return base.digest, nil
	})
}

// Engine returns the name by which components import the engine, and the core module it is, for hosts that run components without
// building any: see [host.Host.AddModuleNamed].
func (t *Toolchain) Engine() (name string, wasm func(ctx context.Context) ([]byte, error)) {
	return t.engine, func(ctx context.Context) ([]byte, error) {
		whole, err := t.wholeEngine(ctx)
		if err != nil {
			return nil, err
		}
		return whole.shared, nil
	}
}

// Close releases the cache. Components that were built stay valid.
func (t *Toolchain) Close() error {
	if t.cache == nil {
		return nil
	}
	return t.cache.Close()
}

// cached returns what build makes, from the cache if possible.
func (t *Toolchain) cached(ctx context.Context, kind, key string, build func() ([]byte, error)) ([]byte, error) {
	if t.cache == nil {
		return build()
	}
	return t.cache.Do(ctx, kind, key, build)
}

// Build makes a component from a source and loads it. Errors that the author can fix are a *BuildError, or a
// *host.LimitError if top-level code reached a limit. If other builds leave no room, the error is a *BusyError.
func (t *Toolchain) Build(ctx context.Context, s Source) (*host.Component, error) {
	wasm, err := t.Assemble(ctx, s, false)
	if err != nil {
		return nil, err
	}
	return t.host.Load(ctx, wasm)
}

// Assemble makes a component from a source. A standalone component holds the engine itself, 640 KB, and runs in any host
// that offers the interfaces it imports.
func (t *Toolchain) Assemble(ctx context.Context, s Source, standalone bool) ([]byte, error) {
	b, err := t.bundleOnce(ctx, s)
	if err != nil {
		return nil, err
	}
	if s.Imports == nil {
		s.Imports = interfacesOf(s.Bindings)
	}
	world, err := t.world(s.Imports, b.Uses)
	if err != nil {
		return nil, err
	}
	world.Imports = t.handles(world.Imports, s.Bindings, b.Uses)
	linkage, descriptor, err := link(world, s.Bindings, s.Files, stackMap(b))
	if err != nil {
		return nil, err
	}
	wanted := partsFor(b.Uses)
	kind := baseFor(linkage, b, wanted)
	base, err := t.baseDigest(ctx, kind)
	if err != nil {
		return nil, err
	}
	more, err := t.partsDigest(ctx, wanted)
	if err != nil {
		return nil, err
	}
	keys := [][]byte{[]byte(strconv.Itoa(formatVersion)), []byte(t.engine), []byte(base + more), []byte(outline(linkage, t.engine)), []byte(strconv.FormatBool(standalone)), descriptor, b.code, b.sourceMap}
	for _, f := range b.files {
		keys = append(keys, []byte(f.path), f.sha256[:])
	}
	if s.Large {
		keys = append(keys, []byte("large"))
	}
	var key strings.Builder
	for _, k := range keys {
		key.WriteString(sha256hex.Of(k))
	}
	build := func() ([]byte, error) { return t.assemble(ctx, s, b, kind, wanted, linkage, descriptor, standalone) }
	if t.cache == nil {
		return build()
	}
	return t.cache.DoBehind(ctx, "extension", sha256hex.Of([]byte(key.String())), build)
}

// outline is a component without its image, for the key of one: it covers the bindings, which another version of this program may
// write otherwise.
func outline(l *linkage, engine string) string {
	return (&assembly{linkage: l, image: &image{}, engine: engine}).text()
}

// maxStackMap bounds the source map that an image holds, in bytes; stacks that a larger bundle looks at have its own positions. To
// read a map of this size takes about 0.1 s of the call that first looks at a stack.
const maxStackMap = 512 << 10

// stackWords are the names by which code gets to see a stack.
var stackWords = []string{"stack", "console"}

// stackMap is the source map that the image of a bundle holds, which is empty where nothing in the code shows a stack. The host has it
// all the same.
func stackMap(b *bundled) string {
	if len(b.sourceMap) > maxStackMap || !slices.ContainsFunc(stackWords, b.Uses) {
		return ""
	}
	return string(b.sourceMap)
}

// link numbers the functions of a world, and describes it to the prelude.
func link(world *abi.World, bindings map[string]string, files, sourceMap string) (l *linkage, descriptor []byte, err error) {
	if l, err = newLinkage(world); err != nil {
		return nil, nil, fmt.Errorf("link: %w", err)
	}
	l.bindings, l.files, l.sourceMap = bindings, files, sourceMap
	if descriptor, err = describe(l); err != nil {
		return nil, nil, fmt.Errorf("describe world: %w", err)
	}
	return l, descriptor, nil
}

func (t *Toolchain) assemble(ctx context.Context, s Source, b *bundled, kind baseKind, wanted []part, l *linkage, descriptor []byte, standalone bool) ([]byte, error) {
	base, images, err := t.baseImage(ctx, kind)
	if err != nil {
		return nil, err
	}
	parts, err := t.partCodes(ctx, wanted)
	if err != nil {
		return nil, err
	}
	img, used, err := images.extension(ctx, base, parts, descriptor, b.code, host.BundleName, s.Large)
	if err != nil {
		return nil, explainImage(err, b.sourceMap, s.FS)
	}
	kept, err := keepSource(s, b)
	if err != nil {
		return nil, err
	}
	meta, err := json.Marshal(Meta{
		Version: formatVersion, Engine: t.engine, Standalone: standalone, Imports: importNames(l), TopLevelClock: used.clock, TopLevelRandom: used.random,
	})
	if err != nil {
		return nil, fmt.Errorf("encode meta: %w", err)
	}
	a := &assembly{linkage: l, image: img, shape: images.shape, engine: t.engine, custom: []customContent{
		{MetaSection, meta}, {host.SourceMapSection, b.sourceMap}, {KeptSection, kept},
	}}
	if standalone {
		whole, err := t.wholeEngine(ctx)
		if err != nil {
			return nil, err
		}
		a.engine, a.inline = "", whole.module
	}
	return a.assemble()
}

const formatVersion = 2

// The custom sections with [Meta] and [Kept].
const (
	MetaSection = "stile:meta"
	KeptSection = "stile:source"
)

// Meta is the content of [MetaSection], as JSON.
type Meta struct {
	Version int `json:"version"`
	// Engine is the name of the core module that the component imports. A standalone component holds the same engine with
	// all its exports.
	Engine     string   `json:"engine"`
	Standalone bool     `json:"standalone"`
	Imports    []string `json:"imports"`
	// TopLevelClock and TopLevelRandom are set if top-level code used the clock or randomness, which are constants there.
	TopLevelClock  bool `json:"topLevelClock"`
	TopLevelRandom bool `json:"topLevelRandom"`
}

// Kept is everything that a component was built from, to rebuild it for another engine. [KeptSection] has it as JSON, compressed with zlib.
type Kept struct {
	Entry string `json:"entry"`
	// Files are the contents by path, in base64.
	Files map[string][]byte `json:"files"`
}

// ReadKept reads the content of a [KeptSection]. It reads no more than the largest source takes.
func ReadKept(section []byte) (*Kept, error) {
	r, err := zlib.NewReader(bytes.NewReader(section))
	if err != nil {
		return nil, err
	}
	text, err := bounded.Read(r, 2*MaxSource)
	if err != nil {
		return nil, err
	}
	kept := &Kept{}
	return kept, json.Unmarshal(text, kept)
}

// keepSource reads the files again that were bundled. They may lie on a disk.
func keepSource(s Source, b *bundled) ([]byte, error) {
	kept := Kept{Entry: s.Entry, Files: map[string][]byte{}}
	for _, f := range b.files {
		content, err := fs.ReadFile(s.FS, f.path)
		if err != nil {
			return nil, fmt.Errorf("keep source: %w", err)
		}
		if sha256.Sum256(content) != f.sha256 {
			return nil, &BuildError{[]Problem{{File: printable.OneLine(f.path), Text: "it changed while it was built; build it again"}}}
		}
		kept.Files[f.path] = content
	}
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	if err := errors.Join(json.NewEncoder(w).Encode(kept), w.Close()); err != nil {
		return nil, fmt.Errorf("keep source: %w", err)
	}
	return out.Bytes(), nil
}

func importNames(l *linkage) []string {
	names := []string{}
	for _, i := range l.imports {
		names = append(names, i.Name)
	}
	return names
}

// explainImage shows the author's lines in what went wrong at the top level. files may be nil.
func explainImage(err error, sourceMap []byte, files fs.FS) error {
	var thrown *evaluationError
	var limit *limitError
	switch {
	case errors.As(err, &thrown):
		p := Problem{Text: "top-level code threw " + thrown.Error()}
		_, p.Fix, _ = absent.Find(thrown.Error())
		if part, _, ok := absent.FindPart(thrown.Error()); ok && p.Fix == "" {
			p.Fix = "code or a package that does without " + part
		}
		if frames := host.MapStack(sourceMap, thrown.Stack); len(frames) > 0 {
			at := frames[max(0, slices.IndexFunc(frames, notOurs))]
			p.File, p.Line, p.Column = at.File, at.Line, at.Column
			line := lineOf(files, at.File, at.Line)
			p.Snippet = Snippet(line, at.Column)
			switch native := nativeOf(files, frames); {
			case native != "" && absent.IsNative(thrown.Message):
				p.Text, p.Fix = p.Text+": the package "+native+" needs native code, which an extension cannot run", absent.Native
			case strings.Contains(thrown.Message, absent.UnboundFiles):
				p.Fix = "a package that reads no files while it is loaded: top-level code has none"
			case p.Fix != "":
			case ofNodeVersion.MatchString(p.Snippet) && ofUndefined.MatchString(thrown.Message), ofRuntime.MatchString(thrown.Message):
				p.Fix = "a package for browsers or workers: this one asks which Node.js it runs in, and an extension does not run in Node.js"
			case thrown.Message == "not a function":
				if part, module := lackedAt(line, at.Column); part != "" {
					p.Fix = "code or a package that does without " + part + " of node:" + module
				}
			}
		}
		return &BuildError{[]Problem{p}}
	case errors.As(err, &limit):
		return fmt.Errorf("run top-level code: %w", &host.LimitError{Limit: limit.Limit, Value: limit.Value})
	default:
		return err
	}
}

var (
	ofNodeVersion = lazyregexp.New(`\bprocess\.versions?\b`)
	ofRuntime     = lazyregexp.New(`(?i)\bnode(?:\.?js)? version\b|\bversion of node\b|\b(?:unknown|unsupported) (?:runtime|platform|environment)\b`)
	ofUndefined   = lazyregexp.New(`\bof undefined$`)
)

// nativeOf returns the first package with native code among frames, before those of the author.
func nativeOf(files fs.FS, frames []host.Frame) string {
	for _, at := range frames {
		if notOurs(at) && !npmspec.InPackage(at.File) {
			break
		}
		if name, ok := npmspec.Native(files, at.File); ok {
			return name
		}
	}
	return ""
}

var calledName = lazyregexp.New(`^\W{0,2}([\w$]+)`)

// lackedAt returns the name at a column of a line, counted in characters, and the module of node that has it, if what stands in for that lacks it.
func lackedAt(line string, column int) (part, module string) {
	text := []rune(line)
	from := min(max(0, column-1), len(text))
	for from > 0 && (text[from-1] == '$' || text[from-1] < 128 && jslex.IsWord(byte(text[from-1]))) {
		from--
	}
	m := calledName.FindStringSubmatch(string(text[from:min(len(text), from+100)]))
	all, err := namesOfNode()
	if m == nil || err != nil {
		return "", ""
	}
	for _, module := range slices.Sorted(maps.Keys(all)) {
		if _, there := nodeModules[module]; there && slices.Contains(all[module].Lacks, m[1]) {
			return m[1], module
		}
	}
	return "", ""
}

// lineOf is a line of a file, or nothing if it cannot be read.
func lineOf(files fs.FS, name string, line int) string {
	if files == nil {
		return ""
	}
	text, err := readAtMost(files, name, MaxSource)
	if err != nil {
		return ""
	}
	for of := range strings.Lines(string(text)) {
		if line--; line == 0 {
			return strings.TrimRight(of, "\r\n")
		}
	}
	return ""
}

// notOurs reports whether a frame is in a file of the author or of a package, and not in a module that comes with the toolchain.
func notOurs(f host.Frame) bool {
	return !strings.HasPrefix(f.File, nodePrefix) && !strings.HasPrefix(f.File, "stile:")
}

// baseFor is the base image of an extension: the larger one if the extension can reach what the smaller one lacks.
func baseFor(l *linkage, b *bundled, wanted []part) baseKind {
	if slices.ContainsFunc(netWords, b.Uses) || slices.ContainsFunc(wanted, func(p part) bool { return p.net }) ||
		slices.ContainsFunc(l.imports, func(i *abi.Interface) bool { return sugars()[kindOf(i.Name)].Net && len(i.Funcs) > 0 }) {
		return baseNet
	}
	return basePlain
}

// netWords are the globals that prelude/net.ts defines.
var netWords = []string{"URL", "URLSearchParams", "ReadableStream", "Request", "Response", "fetch", "subtle"}

// interfacesOf returns the interfaces of bindings, in order. It is nil only if bindings is: no bindings need no interfaces.
func interfacesOf(bindings map[string]string) []string {
	if bindings == nil {
		return nil
	}
	return append([]string{}, slices.Sorted(maps.Values(bindings))...)
}

// world is what the extension imports: from the wanted interfaces, or else from all, the functions whose names occur in the code.
// Every imported function costs a quarter of a microsecond per call, so only useful ones are imported.
func (t *Toolchain) world(wanted []string, uses func(word string) bool) (*abi.World, error) {
	known := t.host.WIT()
	candidates := known.Interfaces()
	named := len(candidates) // before those that the code does not name
	if wanted != nil {
		candidates = nil
		for _, name := range wanted {
			i := known.Interface(name)
			if i == nil {
				return nil, fmt.Errorf("there is no interface %s; if your program provides it, pass its WIT in host.Options.WIT", name)
			}
			candidates = append(candidates, i)
		}
		named = len(candidates)
		candidates = append(candidates, ambient(known)...)
	}
	passes := map[string]bool{} // words
	for _, name := range wanted {
		if word := sugars()[kindOf(name)].Passes; word != "" {
			passes[word] = true
		}
	}
	written := uses
	uses = func(word string) bool { return passes[word] || written(word) } // env.tools.extension.tool() does not name call
	words := apis(wanted)
	w := &abi.World{Name: abi.ExtensionWorld, Exports: []*abi.Interface{known.Interface(abi.ExtensionTools), known.Interface(abi.ExtensionStepwise), known.Interface(abi.ExtensionMemory)}}
	added := map[string]bool{}
	for n, i := range candidates {
		if added[i.Name] {
			continue
		}
		added[i.Name] = true
		if pruned := prune(i, words, n < named, uses); pruned != nil {
			w.Imports = append(w.Imports, pruned)
		}
	}
	w.Imports = lend(w.Imports, candidates[:named])
	if slices.ContainsFunc(w.Imports, func(i *abi.Interface) bool { word := sugars()[kindOf(i.Name)].Passes; return word != "" && uses(word) }) {
		passOn(w.Imports, known)
	}
	if slices.ContainsFunc(w.Imports, waits) {
		poll := *known.Interface(abi.PollInterface)
		poll.Funcs = slices.DeleteFunc(slices.Clone(poll.Funcs), func(f *abi.Func) bool { return f.Name != "poll" && f.Name != "park" })
		w.Imports = append(w.Imports, &poll)
	}
	return w, nil
}

// lend adds `get` of those interfaces whose handles the imported functions borrow, even if the code uses nothing else of them.
func lend(imports, candidates []*abi.Interface) []*abi.Interface {
	lent := map[string]bool{}
	for _, i := range imports {
		for _, f := range i.Funcs {
			for n, p := range f.Params {
				if p.Type.Kind == abi.KindBorrow && (n > 0 || f.Resource == nil) && p.Type.Resource.Interface != i {
					lent[p.Type.Resource.Interface.Name] = true
				}
			}
		}
	}
	for _, i := range candidates {
		if !lent[i.Name] || i.Name == abi.PollInterface || i.Name == abi.EnvInterface {
			continue
		}
		imports = appendGet(imports, i)
	}
	return imports
}

// handles adds `get` of the interfaces of bindings that the code names, if it names none of their methods: the object then says which
// methods there are.
func (t *Toolchain) handles(imports []*abi.Interface, bindings map[string]string, uses func(word string) bool) []*abi.Interface {
	for _, name := range slices.Sorted(maps.Keys(bindings)) {
		i := t.host.WIT().Interface(bindings[name])
		if i != nil && uses(name) {
			imports = appendGet(imports, i)
		}
	}
	return imports
}

// appendGet adds an interface with `get` alone, unless it is among the imports.
func appendGet(imports []*abi.Interface, i *abi.Interface) []*abi.Interface {
	get := slices.IndexFunc(i.Funcs, func(f *abi.Func) bool { return f.Name == "get" && f.Resource == nil })
	if get < 0 || slices.ContainsFunc(imports, func(other *abi.Interface) bool { return other.Name == i.Name }) {
		return imports
	}
	p := *i
	p.Funcs = []*abi.Func{i.Funcs[get]}
	return append(imports, &p)
}

// passOn adds `put` to interfaces that have `get`, since their handles can be passed on to tools.
func passOn(imports []*abi.Interface, known *abi.Resolve) {
	for _, i := range imports {
		if !slices.ContainsFunc(i.Funcs, func(f *abi.Func) bool { return f.Name == "get" }) {
			continue
		}
		for _, f := range known.Interface(i.Name).Funcs {
			if f.Name == "put" && f.Resource == nil {
				i.Funcs = append(i.Funcs, f)
			}
		}
	}
}

// ambient are the interfaces that code uses without naming a binding: those behind web APIs, and those of what other kinds return.
func ambient(known *abi.Resolve) []*abi.Interface {
	behind := map[string]bool{}
	for method := range preludeWords {
		behind[kindOf(method)] = true
	}
	for kind, s := range sugars() {
		for method := range s.Words {
			behind[kindOf(method)] = behind[kindOf(method)] || kindOf(method) != kind
		}
	}
	return slices.DeleteFunc(known.Interfaces(), func(i *abi.Interface) bool { return !strings.HasPrefix(i.Name, builtIn) || !behind[kindOf(i.Name)] })
}

// kindOf is the name of the folder of a kind, given its interface or one of its functions as apis names it.
func kindOf(name string) string {
	name, _, _ = strings.Cut(strings.TrimPrefix(name, builtIn), "@")
	name, _, _ = strings.Cut(name, ".")
	return name
}

// prune keeps the functions of an interface that the code can reach; nil when it reaches none. Those of an interface that is not wanted are reached
// through what is built on them alone.
func prune(i *abi.Interface, apis map[string][]string, wanted bool, uses func(word string) bool) *abi.Interface {
	if i.Name == abi.PollInterface || strings.HasPrefix(i.Name, abi.ExtensionPackage) {
		return nil
	}
	p := *i
	p.Funcs = nil
	for _, f := range i.Funcs {
		if f.Resource != nil && reaches(i, f, apis, wanted, uses) {
			p.Funcs = append(p.Funcs, f)
		}
	}
	if len(p.Funcs) == 0 {
		return nil
	}
	// A method is useful only with the handle that `get` gives, unless other interfaces give it too.
	get := slices.IndexFunc(i.Funcs, func(f *abi.Func) bool { return f.Name == "get" && f.Resource == nil })
	if get < 0 { // the env itself is the handle that functions need
		for _, f := range i.Funcs {
			if f.Resource == nil {
				p.Funcs = append(p.Funcs, f)
			}
		}
	}
	if words, ok := sugars()[kindOf(i.Name)].Words[apiName(i.Name, "get")]; get >= 0 && (!ok || wanted && slices.ContainsFunc(words, uses)) {
		p.Funcs = append(p.Funcs, i.Funcs[get])
	}
	return &p
}

// reaches reports whether a word in the code leads to a method: that of an API over it, or its own name if the interface is wanted.
func reaches(i *abi.Interface, f *abi.Func, apis map[string][]string, wanted bool, uses func(word string) bool) bool {
	name := apiName(i.Name, f.Name)
	if words, ok := apis[name]; ok {
		return slices.ContainsFunc(words, func(word string) bool { return word == always || uses(word) })
	}
	return wanted && uses(camel(name[strings.LastIndexByte(name, '.')+1:]))
}

// apiName is what apis calls a method of an interface: "kv.bucket.get".
func apiName(iface, method string) string {
	return kindOf(iface) + "." + strings.TrimPrefix(method, "[method]")
}

// always marks what is imported without being named.
const always = ""

// subset is what apis calls the method that makes an env to pass on.
const subset = "env.env.subset"

// preludeWords are the words that lead to a method through the web APIs of the prelude.
var preludeWords = map[string][]string{
	"env.env.names": {always},
	"env.env.vars":  {"vars"},
	subset:          nil, // apis has what passes bindings on

	// A promise that nobody waits for is told of there.
	"console.console.log": {"console", "async", "Promise"},

	"clock.clock.now":       {"Date"},
	"clock.clock.monotonic": {"performance", "setTimeout", "setInterval", "timeout", "console"},
	"clock.clock.subscribe": {"setTimeout", "setInterval", "timeout", "setImmediate", "MessageChannel"},

	"compression.codec.step": {"CompressionStream", "DecompressionStream", "stileCodec"},

	"random.random.u64":   {"random"},
	"random.random.bytes": {"getRandomValues", "randomUUID"},
}

// apis are the words that lead to a method where they are not just its own name: what the prelude builds on it, and the sugar of the wanted
// interfaces, of all if wanted is nil. A test compares them with what is used.
func apis(wanted []string) map[string][]string {
	all := maps.Clone(preludeWords)
	for kind, s := range sugars() {
		if wanted != nil && !slices.ContainsFunc(wanted, func(name string) bool { return kindOf(name) == kind }) {
			continue
		}
		for method, words := range s.Words {
			all[method] = slices.Concat(all[method], words)
		}
		if s.Passes != "" {
			all[subset] = append(all[subset], s.Passes)
		}
	}
	return all
}

// waits reports whether something in an interface is waited for.
func waits(i *abi.Interface) bool {
	return slices.ContainsFunc(i.Funcs, func(f *abi.Func) bool {
		t := f.Result
		if t != nil && t.Kind == abi.KindResult {
			t = t.Ok
		}
		return t != nil && t.Kind == abi.KindOwn && t.Resource.Interface.Name == abi.PollInterface
	})
}
