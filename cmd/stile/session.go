package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/capabilities/browser"
	"github.com/stilehost/stile/capabilities/sandbox"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/inspect"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/extension/typecheck"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/cache"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/turns"
	"github.com/stilehost/stile/internal/wasmbin"
	"github.com/stilehost/stile/toolchain"
	"github.com/stilehost/stile/toolchain/npm"
)

const (
	maxEvaluated = toolchain.MaxSource // bytes of a file that is evaluated; the toolchain accepts fewer, with a better message
	maxComponent = extension.MaxComponent
	// maxLoaded is the largest component that is loaded: an image of the 128 MiB that the top level of a large source has, and its source.
	maxLoaded = 144 << 20
)

// Memory of a command that serves many calls at once. SECURITY.md has the whole sum.
const (
	recordMemory = 64 << 20 // bytes of recordings of calls under way, beside those of each call
	// goMemory is when Go begins to collect garbage as often as it must to take no more. Without it, garbage would double what is in use.
	goMemory = 2 << 30
)

// settings come from the environment. Nothing else reads the environment.
type settings struct {
	home   string // state to keep
	cache  string // what can be rebuilt
	keys   string // the folder with the key of the cache
	engine string // a file with the JavaScript engine; empty if npm obtains it
	// keyring is set if the keyring of the session may be used.
	keyring bool
	record  retention
	runs    runsKept
	signals string // what addresses of mailboxes begin with; empty if there are none
	user    string // the person's name; empty for the operating system's user
	browser browser.EngineOptions
	sandbox sandbox.Options
}

// readSettings makes all paths absolute, so that they stay valid if the current folder changes.
func readSettings() (settings, error) {
	home, err := folder("STILE_HOME", "XDG_DATA_HOME", ".local", "share")
	if err != nil {
		return settings{}, err
	}
	rebuilt, err := folder("STILE_CACHE", "XDG_CACHE_HOME", ".cache")
	if err != nil {
		return settings{}, err
	}
	engine := os.Getenv("STILE_ENGINE")
	if engine != "" {
		if engine, err = filepath.Abs(engine); err != nil {
			return settings{}, fmt.Errorf("STILE_ENGINE: %w", err)
		}
	}
	keyring := true
	switch value := os.Getenv("STILE_KEYRING"); value {
	case "", "on":
	case "off":
		keyring = false
	default:
		return settings{}, usagef("STILE_KEYRING is %q; write on or off", value)
	}
	record, err := parseRetention(os.Getenv("STILE_RECORD"))
	if err != nil {
		return settings{}, usagef("STILE_RECORD: %w", err)
	}
	runs, err := parseRunsKept(os.Getenv("STILE_RUNS"))
	if err != nil {
		return settings{}, usagef("STILE_RUNS: %w", err)
	}
	signals, err := parseSignalsURL(os.Getenv("STILE_SIGNALS"))
	if err != nil {
		return settings{}, usagef("STILE_SIGNALS: %w", err)
	}
	var web browser.EngineOptions
	switch value := os.Getenv("STILE_BROWSER"); value {
	case "", "confined":
	case "unconfined":
		web.Unconfined = true
	default:
		return settings{}, usagef("STILE_BROWSER is %q; write confined or unconfined", value)
	}
	boxes, err := parseSandbox(os.Getenv("STILE_SANDBOX"))
	if err != nil {
		return settings{}, err
	}
	return settings{home, rebuilt, keyFolder(home), engine, keyring, record, runs, signals, os.Getenv("STILE_USER"), web, boxes}, nil
}

// parseSandbox reads the value of STILE_SANDBOX.
func parseSandbox(value string) (o sandbox.Options, err error) {
	if value == "" {
		return o, nil
	}
	for word := range strings.SplitSeq(value, ",") {
		switch {
		case word == "without-user-namespace":
			o.WithoutUserNamespace = true
		case o.Runtime == "" && (slices.Contains(sandbox.Runtimes, word) || filepath.IsAbs(word)):
			o.Runtime = word
		default:
			return o, usagef("STILE_SANDBOX is %q; write %s or the path of one of them, and without-user-namespace, or both with a comma between", value, strings.Join(sandbox.Runtimes, ", "))
		}
	}
	return o, nil
}

// keyFolder is the folder with the key of the cache. A new home has no key. It uses the key in the user's standard home, if there is
// one, so that the same user's cache stays usable.
func keyFolder(home string) string {
	if standard, err := folder("", "XDG_DATA_HOME", ".local", "share"); err == nil && !cache.HasKey(home) && cache.HasKey(standard) {
		return standard
	}
	return home
}

// folder returns the value of a variable, or else stile in an XDG base folder.
func folder(variable, base string, standard ...string) (string, error) {
	if dir := os.Getenv(variable); dir != "" {
		return filepath.Abs(dir)
	}
	// The XDG specification says to ignore relative paths.
	if dir := os.Getenv(base); filepath.IsAbs(dir) {
		return filepath.Join(dir, "stile"), nil
	}
	user, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find a folder: set %s: %w", variable, err)
	}
	return filepath.Join(slices.Concat([]string{user}, standard, []string{"stile"})...), nil
}

// session is an open host. The toolchain is made on first use, because that may obtain the engine.
type session struct {
	settings
	host     *host.Host
	secrets  *credentials
	logger   *slog.Logger
	progress func(message string)
	children childRuns

	mu    sync.Mutex
	tools *toolchain.Toolchain
}

// sessionOptions are a command's requirements of the host.
type sessionOptions struct {
	memory int64    // of one call, if more than the default
	wit    []string // an embedder's interfaces
	many   bool     // several calls at once
}

// makeFolder creates the folder that a variable names or defaults to.
func makeFolder(variable, folder string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("make %s: %w; set %[1]s to a folder that you can write to", variable, err)
	}
	return nil
}

func openSession(ctx context.Context, s *streams, o sessionOptions) (*session, error) {
	where, err := readSettings()
	if err != nil {
		return nil, err
	}
	if err := makeFolder("STILE_HOME", where.home); err != nil {
		return nil, err
	}
	if err := makeFolder("STILE_CACHE", where.cache); err != nil {
		return nil, err
	}
	turns.Share(where.cache)
	n := &session{
		settings: where, secrets: newCredentials(ctx, where, s), progress: func(string) {},
		logger: slog.New(&warnings{streams: s, cache: where.cache}),
	}
	n.children.of = n
	if s.interactive() {
		n.progress = func(message string) { s.say("%s", message) }
	}
	options := host.Options{
		Instances: 80, WarmInstances: 1, // one call at a time, and the tools it may call
		MaxMemory: max(o.memory, host.DefaultLimits().Memory), MaxComponent: maxLoaded,
		CacheDir: where.cache, KeyDir: where.keys, Compiler: compiler(), WIT: o.wit, Logger: n.logger, Redact: n.secrets.redact,
		Wants: capabilities.Builtin.Wants,
	}
	if o.many {
		options.Instances, options.WarmInstances = 0, 0 // the host's defaults
		options.RecordMemory = recordMemory
		if debug.SetMemoryLimit(-1) == math.MaxInt64 { // GOMEMLIMIT is not set
			debug.SetMemoryLimit(goMemory)
		}
	}
	n.host, err = host.New(ctx, options)
	if err != nil {
		return nil, err
	}
	if o.many && os.Getenv("GOMAXPROCS") == "" {
		host.RaiseMaxProcs()
	}
	return n, nil
}

// Close frees what the session holds.
func (n *session) Close() error {
	var err error
	if n.tools != nil {
		err = n.tools.Close()
	}
	return errors.Join(err, n.host.Close(), n.secrets.Close())
}

// checker returns what checks types, and the npm client that fetches it. The caller closes both, the client last.
func (n *session) checker() (*typecheck.Checker, *npm.Client, error) {
	client, err := npm.New(npm.Options{CacheDir: n.cache, KeyDir: n.keys, Bundler: bundler(), Progress: n.progress, Logger: n.logger})
	if err != nil {
		return nil, nil, err
	}
	types, err := typecheck.New(typecheck.Options{
		Toolchain: n.toolchain, Packages: client, CacheDir: n.cache, KeyDir: n.keys, Progress: n.progress, Logger: n.logger,
	})
	if err != nil {
		return nil, nil, errors.Join(err, client.Close())
	}
	return types, client, nil
}

// toolchain is safe for concurrent use.
func (n *session) toolchain(ctx context.Context) (*toolchain.Toolchain, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.tools == nil {
		t, err := toolchain.New(ctx, n.host, toolchain.Options{
			CacheDir: n.cache, KeyDir: n.keys, Engine: n.engine, Bundler: bundler(), Progress: n.progress, Logger: n.logger,
		})
		if err != nil {
			return nil, err
		}
		n.tools = t
	}
	return n.tools, nil
}

// wants are the bindings that a component is built for, and additional interfaces. With neither, the component gets the interfaces
// that it uses.
type wants struct {
	manifest string            // the file that asks for some of the bindings
	bindings map[string]string // interfaces by name
	imports  []string
	files    string            // the binding whose files node:fs has
	through  func(fs.FS) fs.FS // what the source is read through; nil for nothing
}

// read reads a component, makes one of an Extism plug-in, or builds one from source.
func (n *session) read(ctx context.Context, file string, w wants) ([]byte, error) {
	if filepath.Ext(file) == ".wasm" {
		wasm, err := readFile(file, maxComponent)
		if err != nil || !toolchain.IsExtism(wasm) {
			return wasm, err
		}
		if wasm, err = toolchain.Componentize(toolchain.ExtensionWorld(n.host.WIT()), wasm); err != nil {
			return nil, fmt.Errorf("%s: %w", printable.Line(file), err)
		}
		return wasm, nil
	}
	return n.assemble(ctx, file, w, false)
}

// load loads what read reads. It also returns the component's bytes.
func (n *session) load(ctx context.Context, file string, w wants) (*host.Component, []byte, error) {
	wasm, err := n.read(ctx, file, w)
	if err != nil {
		return nil, nil, err
	}
	c, err := n.loadComponent(ctx, file, wasm)
	return c, wasm, err
}

// loadComponent loads a component from a file or a build. It needs the engine only if the component shares it.
func (n *session) loadComponent(ctx context.Context, file string, wasm []byte) (*host.Component, error) {
	slow := time.AfterFunc(time.Second, func() { n.progress("Compiling " + printable.OneLine(file) + ", which is kept for next time ...") })
	defer slow.Stop()
	c, err := n.host.Load(ctx, wasm)
	var refused *host.LoadError
	if errors.As(err, &refused) && refused.LacksModule() {
		if _, err := n.toolchain(ctx); err != nil {
			return nil, err
		}
		c, err = n.host.Load(ctx, wasm)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

// assemble builds a component from source.
func (n *session) assemble(ctx context.Context, file string, w wants, standalone bool) ([]byte, error) {
	var wasm []byte
	err := n.withSource(ctx, file, w, func(t *toolchain.Toolchain, source toolchain.Source) (err error) {
		wasm, err = t.Assemble(ctx, source, standalone)
		return err
	})
	return wasm, err
}

// isWasm reports whether a file's content is WebAssembly. The name does not matter.
func isWasm(file string) bool {
	f, err := openFile(file)
	if err != nil {
		return false // reading all of it reports the error
	}
	var magic [len(wasmbin.Magic)]byte
	_, err = io.ReadFull(f, magic[:])
	return f.Close() == nil && err == nil && string(magic[:]) == wasmbin.Magic
}

// entryOf returns the file of a folder that exports the tools: the only source, or the one that stile ext add takes, or the only component where there
// is no source. A name that is not that of such a folder stays as it is.
func entryOf(name string) string {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe keeps nobody waiting
	if err != nil {
		return name
	}
	entries, err := f.ReadDir(maxDraftEntries)
	if err := errors.Join(err, f.Close()); err != nil {
		return name // most are files
	}
	var sources, components []string
	for _, e := range entries {
		file := e.Name()
		switch {
		case !e.Type().IsRegular() || strings.HasPrefix(file, "."):
		case slices.Contains(lifecycle.EntryEndings(), filepath.Ext(file)) && !strings.HasSuffix(file, ".d.ts"):
			sources = append(sources, file)
		case filepath.Ext(file) == ".wasm":
			components = append(components, file)
		}
	}
	if len(sources) == 0 {
		sources = components
	}
	if len(sources) != 1 {
		folder := name
		if abs, err := filepath.Abs(name); err == nil {
			folder = abs
		}
		sources = slices.DeleteFunc(lifecycle.Entries(filepath.Base(folder)), func(name string) bool { return !slices.Contains(sources, name) })
	}
	if len(sources) == 0 {
		return name
	}
	return filepath.Join(name, sources[0])
}

// nameSources gives the problems of a source the paths of files that lead there from here.
func nameSources(err error, folder string) error {
	name := func(file *string) {
		path := filepath.Join(folder, filepath.FromSlash(*file))
		if _, missing := os.Lstat(path); *file != "" && missing == nil {
			*file = path
		}
	}
	if found, ok := errors.AsType[*toolchain.BuildError](err); ok {
		for i := range found.Problems {
			name(&found.Problems[i].File)
		}
	} else if found, ok := errors.AsType[*extension.ProblemsError](err); ok {
		for i := range found.Problems {
			name(&found.Problems[i].File)
		}
	}
	return err
}

// withSource opens a source for as long as use takes.
func (n *session) withSource(ctx context.Context, file string, w wants, use func(*toolchain.Toolchain, toolchain.Source) error) (err error) {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && filepath.Ext(file) == "":
		return usagef("%s: no such file; name a source or a component, such as %[1]s.ts. If it is a stored extension, stile ext call calls its tools", line(file, 200))
	case err != nil:
		return &usageError{err}
	case info.IsDir():
		return usagef("%s is a folder, and it is unclear which of its files exports the tools; name the file, or call it index.ts", line(file, 200))
	case !info.Mode().IsRegular():
		return usagef("%s is not a file", file)
	}
	if isWasm(file) {
		return usagef("%s is WebAssembly: give it a name that ends in .wasm", file)
	}
	for _, binding := range slices.Sorted(maps.Keys(w.bindings)) {
		if n.host.WIT().Interface(w.bindings[binding]) == nil {
			text, _ := readFile(w.manifest, maxText) // without it, the problem has no place
			line, column := extension.PlacesIn(text).OfBinding(binding)
			return &usageError{errors.New(extension.Problem{
				File: w.manifest, Line: line, Column: column,
				Text: fmt.Sprintf("bindings.%s: there is no interface %s here; a program that embeds Stile can provide it, and stile build reads its WIT with --wit", binding, w.bindings[binding]),
			}.String())}
		}
	}
	for _, name := range w.imports {
		if n.host.WIT().Interface(name) == nil {
			return usagef("--import: there is no interface %s; give the file of an embedder's interface with --wit", name)
		}
	}
	imports := slices.Concat(w.imports, slices.Sorted(maps.Values(w.bindings)))
	source, tree, err := toolchain.Open(file, n.home, n.cache, n.keys)
	if err != nil {
		return &usageError{err}
	}
	defer func() { err = errors.Join(nameSources(err, filepath.Dir(file)), tree.Close()) }()
	if w.through != nil {
		source.FS = w.through(source.FS)
	}
	derived, err := inspect.Derive(source.FS, source.Entry)
	if err != nil {
		return err
	}
	source.Files = w.files
	if derived != nil {
		source.FS, source.Entry = derived.Tree(source.FS), derived.Entry
	}
	if w.bindings != nil {
		source.Bindings = w.bindings
	}
	if w.imports != nil {
		source.Imports = imports
	}
	t, err := n.toolchain(ctx)
	if err != nil {
		return err
	}
	return use(t, source)
}
