package ladder

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/rung"
	"github.com/stilehost/stile/toolchain"
)

//go:generate go test -run ^TestDefinitions$ . -update

// sources are the tools that are written in TypeScript, and what they share.
//
//go:embed *.ts */*.ts
var sources embed.FS

// definitions are what these tools export, so that listing tools builds nothing.
//
//go:embed definitions.json
var definitions []byte

// Rung is a level of the ladder. Each adds to the ones below.
type Rung = rung.Rung

// The rungs, from the bottom.
const (
	Workspace = rung.Workspace
	Isolate   = rung.Isolate
	NPM       = rung.NPM
	Browser   = rung.Browser
	Sandbox   = rung.Sandbox
)

// Tool is a tool of the ladder.
type Tool struct {
	// Name is its registered name, such as "workspace_read".
	Name string
	Rung Rung
	// Definition is as the tool exports it, with the short name.
	Definition abi.Definition
}

// set is a source of tools: the module NAME/NAME.ts, whose tools are called NAME_TOOL.
type set struct {
	name string
	rung Rung
	// bindings are the names in its env. Each is that of its kind.
	bindings []string
}

// sets are the tools that are written in TypeScript. Each has the binding of its name, and the bindings of those below that it needs.
var sets = []set{
	{"workspace", Workspace, []string{"workspace"}},
	{"browser", Browser, []string{"browser", "workspace"}},
	{"sandbox", Sandbox, []string{"sandbox", "workspace"}},
}

// interfaces are those of the set's bindings.
func (s set) interfaces() map[string]string {
	known := map[string]string{}
	for _, k := range capabilities.Builtin.All() {
		if slices.Contains(s.bindings, k.Name) {
			known[k.Name] = k.Interface
		}
	}
	return known
}

// The tools for code, from rung [Isolate] on: what runs it, what finds tools for it, and what shows their types. Whoever serves them knows
// the tools of extensions, so the ladder has only their names.
const (
	CodeTool     = "code_run"
	SearchTool   = "code_search"
	DescribeTool = "code_describe"
)

// CodeTools are the names of these tools.
func CodeTools() []string { return []string{CodeTool, SearchTool, DescribeTool} }

var readTools = sync.OnceValue(func() []Tool {
	var exported map[string][]abi.Definition
	if err := json.Unmarshal(definitions, &exported); err != nil {
		panic("ladder: definitions.json: " + err.Error()) // a test compares it with what the tools export
	}
	var all []Tool
	for _, s := range sets {
		for _, d := range exported[s.name] {
			all = append(all, Tool{s.name + "_" + d.Name, s.rung, d})
		}
	}
	return all
})

// Tools are the tools of all rungs that are written in TypeScript, from the bottom. [CodeTools] are not among them.
func Tools() []Tool { return slices.Clone(readTools()) }

// Recorder takes recordings of calls and keeps the components that they ran in, as *recording.Store does.
type Recorder interface {
	host.Recorder
	Keep(ctx context.Context, wasm []byte) error
}

// KitOptions configure a [Kit]. Host and Toolchain are required.
type KitOptions struct {
	Host *host.Host
	// Toolchain is called when something is built, which may take seconds the first time.
	Toolchain func(context.Context) (*toolchain.Toolchain, error)
	// Recorder takes recordings of all calls. Default: nothing is recorded.
	Recorder Recorder
	// Bundler is as in toolchain.Options: a separate process finds the imports of large code. Default: in this process.
	Bundler []string
	// Logger receives what goes wrong beside a call. Default: nothing is logged.
	Logger *slog.Logger
}

// Kit builds the parts of ladders, each when it is first used, and shares them among all ladders of a program. It is safe for concurrent
// use. Its creator closes it, after its ladders.
type Kit struct {
	options KitOptions

	mu         sync.Mutex
	closed     bool
	components map[string]*host.Component      // by the name of a set
	evaluators map[string]*toolchain.Evaluator // by the bindings and parts of the code
	packaged   *packaged
	catalogs   map[string]*tools.Catalog // by the names of their tools
}

// NewKit returns a kit, which has built nothing.
func NewKit(o KitOptions) *Kit {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Kit{options: o, components: map[string]*host.Component{}, evaluators: map[string]*toolchain.Evaluator{}, packaged: &packaged{}, catalogs: map[string]*tools.Catalog{}}
}

// ErrClosed is the error of a kit that is closed.
var ErrClosed = errors.New("the ladder is closed")

// component returns the component of a set.
func (k *Kit) component(ctx context.Context, s set) (*host.Component, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c := k.components[s.name]; c != nil || k.closed {
		return c, k.open()
	}
	t, err := k.options.Toolchain(ctx)
	if err != nil {
		return nil, err
	}
	wasm, err := t.Assemble(ctx, toolchain.Source{FS: sources, Entry: s.name + "/" + s.name + ".ts", Bindings: s.interfaces()}, false)
	if err != nil {
		return nil, fmt.Errorf("build the tools of %s: %w", s.name, err)
	}
	c, err := k.options.Host.Load(ctx, wasm)
	if err != nil {
		return nil, err
	}
	k.keep(ctx, wasm)
	k.components[s.name] = c
	return c, nil
}

func (k *Kit) open() error {
	if k.closed {
		return ErrClosed
	}
	return nil
}

// keep makes the recorder keep a component for replays.
func (k *Kit) keep(ctx context.Context, wasm []byte) {
	if k.options.Recorder == nil {
		return
	}
	if err := k.options.Recorder.Keep(ctx, wasm); err != nil {
		k.options.Logger.Warn("keep a component of the ladder for replays", "error", err)
	}
}

// recorder is the recorder as a call takes it, which must not be an interface that holds nil.
func (k *Kit) recorder() host.Recorder {
	if k.options.Recorder == nil {
		return nil
	}
	return k.options.Recorder
}

// evaluator returns what runs code whose env has these capabilities and which needs these parts.
func (k *Kit) evaluator(ctx context.Context, env host.Env, parts toolchain.Parts) (*toolchain.Evaluator, error) {
	bindings := interfaces(env)
	key := keyOf(bindings) + fmt.Sprintln(parts)
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.evaluators[key]; e != nil || k.closed {
		return e, k.open()
	}
	t, err := k.options.Toolchain(ctx)
	if err != nil {
		return nil, err
	}
	e, err := t.Evaluator(ctx, bindings, parts)
	if err != nil {
		return nil, err
	}
	k.keep(ctx, e.Wasm())
	k.evaluators[key] = e
	return e, nil
}

// catalog returns what finds tools for code. There are few different ones.
func (k *Kit) catalog(all []tools.Description) *tools.Catalog {
	var key strings.Builder
	for _, d := range all {
		key.WriteString(d.Name + "\n")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.catalogs[key.String()]
	if c == nil {
		c = tools.NewCatalog(all)
		k.catalogs[key.String()] = c
	}
	return c
}

// interfaces are those of an env, by the names of its bindings.
func interfaces(env host.Env) map[string]string {
	bindings := make(map[string]string, len(env))
	for name, c := range env {
		bindings[name] = c.Interface()
	}
	return bindings
}

// Close waits for calls and frees what the kit has built. It is idempotent.
func (k *Kit) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	errs := []error{k.packaged.close()}
	for _, c := range k.components {
		errs = append(errs, c.Close())
	}
	for _, e := range k.evaluators {
		errs = append(errs, e.Close())
	}
	clear(k.components)
	clear(k.evaluators)
	return errors.Join(errs...)
}
