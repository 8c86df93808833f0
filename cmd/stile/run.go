package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/capabilities/browser"
	"github.com/stilehost/stile/capabilities/code"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/sandbox"
	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/evaluate"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/printable"
)

type runCommand struct {
	File string `arg:"" help:"Extension: .ts, .js, .mjs or .wasm, or a folder with it."`
	Tool string `arg:"" optional:"" help:"Tool to call. Without it, the tools are listed."`
	callFlags
	sourceFlags
	recordFlag
	durableFlags
	JSON bool `name:"json" help:"List tools as JSON, schemas included. The result of a tool is always JSON."`
}

// recordFlag says whether a call is recorded.
type recordFlag struct {
	NoRecord bool `help:"Do not record the call. STILE_RECORD=off does the same for every call."`
}

// recorded returns the component whose call is to be recorded, or nothing.
func (f recordFlag) recorded(wasm []byte) []byte {
	if f.NoRecord {
		return nil
	}
	return wasm
}

// sourceFlags say what else a source is run with.
type sourceFlags struct {
	FS       string   `name:"fs" placeholder:"NAME" help:"Workspace binding whose files node:fs has."`
	WASIFS   []string `name:"wasi-fs" sep:"none" placeholder:"PATH=NAME" help:"Path at which WASI has the files of a workspace binding, such as /=notes. Can be repeated."`
	WASIHTTP string   `name:"wasi-http" placeholder:"NAME" help:"Binding that serves wasi:http."`
	Var      []string `name:"var" sep:"none" placeholder:"NAME=VALUE" help:"Value that the tool reads as env.vars.NAME. Can be repeated."`
}

// prepared is what the flags and the manifest say of a run.
type prepared struct {
	manifest *extension.Manifest // nil if none is named
	gaps     extension.Gaps      // of it
	bindings []extension.Binding
	wants    wants
	request  host.Request
}

// prepare reads the manifest, and checks what it and the flags say. file is the source or component.
func prepare(file string, call callFlags, source sourceFlags) (p prepared, err error) {
	if p.manifest, p.bindings, err = call.bindings(); err != nil {
		return p, err
	}
	if p.request.WASI, err = source.wasi(p.manifest, p.bindings); err != nil {
		return p, err
	}
	if p.request.Vars, err = source.vars(p.manifest); err != nil {
		return p, err
	}
	files, err := source.files(file, p.manifest, p.bindings)
	// Without their interfaces, the defaults could not even be denied.
	p.wants = wants{manifest: call.Manifest, files: files, bindings: extension.Known(extension.Merge(p.bindings, extension.Defaults(capabilities.Builtin)))}
	return p, err
}

// extension names what is run: the extension of the manifest, or the file.
func (p prepared) extension(file string) string {
	if p.manifest != nil {
		return p.manifest.Name
	}
	return filepath.Base(file)
}

// offered returns the tools of a component, which the manifest must list.
func (p prepared) offered(ctx context.Context, component *host.Component) ([]abi.Definition, error) {
	tools, err := component.Tools(ctx)
	if err == nil && p.manifest != nil {
		err = checkTools(p.manifest, p.wants.manifest, names(tools))
	}
	return tools, err
}

// inputFlags are the input and the limits of a call.
type inputFlags struct {
	Input string   `placeholder:"JSON" help:"Input of the tool: JSON, @FILE, or - for stdin. Default: {}."`
	Limit []string `sep:"none" placeholder:"NAME=VALUE" help:"Limit of the call: memory, cpu, wall, input, output, handles, pending or nesting. Can be repeated."`
}

// read returns the input and the limits. It waits for stdin until ctx ends.
func (f inputFlags) read(ctx context.Context, s *streams) (limits host.Limits, input []byte, err error) {
	if limits, err = parseLimits(f.Limit); err != nil {
		return limits, nil, err
	}
	input, err = interruptible(ctx, func() ([]byte, error) { return readInput(f.Input, s.in, limits.Input) })
	return limits, input, err
}

// callFlags configure a call of a tool.
type callFlags struct {
	inputFlags
	outputFlag
	Bind       []string `sep:"none" placeholder:"NAME=SPEC" help:"What the tool gets as env.NAME. Can be repeated."`
	Manifest   string   `placeholder:"FILE" help:"Manifest whose bindings the tool gets, or a folder with one. Default: no manifest."`
	NoDefaults bool     `help:"Do not bind console, clock and random."`
}

// Help implements kong.HelpProvider.
func (*runCommand) Help() string {
	return `The tool can do what its bindings allow. A --bind replaces the manifest's binding of the same name.

` + specForms() + `
The call is recorded in STILE_HOME. stile calls lists, shows and replays it.

With --manifest, the extension gets a workspace and a bucket for each kv binding. They belong to that file, by its path and the name in it: stile ws ls and stile kv ls list them as run.FOLDER-DIGEST.NAME. To give it a workspace of yours, add --bind, as in --bind notes=workspace:mine,rw. A binding whose rules use a secret needs --bind too, and the error has the flag.

--var sets a var of the manifest, which checks it. Without a manifest, a value that is JSON is that value, and any other is a text.

Examples:

    stile run distance.ts
    stile run notes list_notes
    stile run notes.ts add_note --bind notes=workspace:mine,rw --input '{"title": "today", "text": "sun"}'
    stile run github.ts list_issues --manifest github.json --input @query.json
    stile run github.ts list_issues --bind 'github=http:https://api.github.com/repos/**' --input - < query.json
    stile run tool.ts list --bind notes=dir:. --fs notes
    stile run tool.wasm convert --bind files=dir:.,rw --wasi-fs /=files --bind 'web=http:https://example.com/**' --wasi-http web
    stile run issues.ts list --manifest issues.json --var team=core
    stile run chart.ts draw --output chart.png
    stile run hungry.ts work --limit cpu=200ms --limit memory=16MiB
    stile run order.ts order --durable --key order-17`
}

// specForms lists the forms of --bind, in the order of the kinds. Kinds that have only a name share the last line.
func specForms() string {
	var forms, names strings.Builder
	for _, k := range capabilities.Builtin.All() {
		switch lines := strings.Split(k.SpecMeans, "\n"); {
		case k.ParseSpec == nil:
		case k.SpecForm == "":
			fmt.Fprintf(&names, "  NAME=%s", k.Name)
		default:
			fmt.Fprintf(&forms, "    NAME=%-31s %s\n", k.SpecForm, lines[0])
			for _, line := range lines[1:] {
				fmt.Fprintf(&forms, "%41s%s\n", "", line)
			}
		}
	}
	return forms.String() + "  " + names.String() + "\n"
}

// Run implements the command.
func (c *runCommand) Run(ctx context.Context, s *streams) (err error) {
	if err := c.check(); err != nil {
		return err
	}
	c.File = entryOf(c.File)
	if err := c.ready(); err != nil {
		return err
	}
	p, err := prepare(c.File, c.callFlags, c.sourceFlags)
	if err != nil {
		return err
	}
	if p.request.Limits, p.request.Input, err = c.read(ctx, s); err != nil {
		return err
	}
	n, err := openSession(ctx, s, sessionOptions{memory: p.request.Limits.Memory})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()

	component, wasm, err := n.load(ctx, c.File, p.wants)
	if err != nil {
		return err
	}
	tools, err := p.offered(ctx, component)
	if err != nil {
		return err
	}
	if c.Tool == "" {
		if c.JSON {
			return printJSON(s.out, map[string][]tool{"tools": toolsOf(tools)})
		}
		_, err = io.WriteString(s.out, toolTable("", tools))
		return err
	}
	p.request.Tool, p.request.Extension = c.Tool, p.extension(c.File)
	if c.Durable {
		return c.durably(ctx, s, n, p, component, wasm)
	}
	output, err := c.call(ctx, s, n, c.recorded(wasm), p.bindings, p.request, component.Do)
	if err != nil {
		return c.besideManifest(err, c.File)
	}
	return c.result(s, output)
}

// besideManifest adds to an error of a call without a manifest the source, which a manifest may be beside.
func (c *callFlags) besideManifest(err error, file string) error {
	if bound, ok := errors.AsType[*boundError](err); ok && c.Manifest == "" {
		bound.file = file
	}
	return err
}

// vars are the manifest's, with what the command line says instead.
func (c sourceFlags) vars(m *extension.Manifest) ([]byte, error) {
	set := map[string]json.RawMessage{}
	for _, given := range c.Var {
		name, value, err := extension.ParseVar(m, given)
		if err != nil {
			return nil, usagef("--var: %w", err)
		}
		set[name] = value
	}
	if err := extension.TooManyVars(set); err != nil {
		return nil, usagef("--var: %w", err)
	}
	if m == nil {
		if len(set) == 0 {
			return nil, nil
		}
		return capability.JSON(set), nil
	}
	return extension.VarsText(m.Configure(set)), nil
}

// files is the binding whose files node:fs has: the manifest's, or the one that the command line names instead.
func (c sourceFlags) files(file string, m *extension.Manifest, bindings []extension.Binding) (string, error) {
	if c.FS == "" {
		if m != nil {
			return m.FS, nil
		}
		return "", nil
	}
	if problem := abi.BindingProblem(abi.WorkspaceInterface, interfaceOf(bindings)(c.FS)); problem != "" {
		return "", usagef("--fs: the binding %s %s; --bind gives the tool its bindings", printable.Text(c.FS), problem)
	}
	if filepath.Ext(file) == ".wasm" {
		return "", usagef("--fs: %s is built, and what node:fs works on is in it; stile build takes it from the manifest", printable.Text(file))
	}
	return c.FS, nil
}

// interfaceOf tells the interface of a binding, or nothing if there is none.
func interfaceOf(bindings []extension.Binding) func(name string) string {
	return func(name string) string {
		for _, b := range bindings {
			if b.Name == name {
				return b.Grant.Interface()
			}
		}
		return ""
	}
}

// wasi is the manifest's, with what the command line says instead.
func (c sourceFlags) wasi(m *extension.Manifest, bindings []extension.Binding) (w abi.WASI, err error) {
	w.Filesystem = map[string]string{}
	if m != nil {
		maps.Copy(w.Filesystem, m.WASI.Filesystem)
		w.HTTP = m.WASI.HTTP
	}
	for _, given := range c.WASIFS {
		at, name, ok := strings.Cut(given, "=")
		if !ok {
			return w, usagef("--wasi-fs %s: it has the form PATH=NAME, like /=notes", printable.Text(given))
		}
		w.Filesystem[at] = name
	}
	w.HTTP = cmp.Or(c.WASIHTTP, w.HTTP)
	if err = w.Check(interfaceOf(bindings)); err != nil {
		return w, usagef("%w; --bind gives the tool its bindings", err)
	}
	return w, nil
}

// newState opens bindings of the command line. The caller closes it.
func (n *session) newState(s *streams) *extension.State {
	state := extension.NewState(n.home, s.log, n.cache, n.keys)
	state.Progress = s.toolProgress()
	state.Configure(http.Kind, http.Options{Credentials: n.secrets})
	state.Configure(browser.Kind, n.browser)
	state.Configure(sandbox.Kind, n.sandbox)
	state.Configure(tools.Kind, tools.Loader(func(ctx context.Context, given tools.Rights) (*tools.Toolbox, error) {
		return n.toolbox(ctx, s, state, given)
	}))
	state.Configure(code.Kind, code.Evaluator(evaluate.New(evaluate.Options{Toolchain: n.toolchain}).Run))
	return state
}

// call makes a call with the bindings and the env of the request, and returns its output. It is recorded if wasm is the component that it
// runs in.
func (c *callFlags) call(
	ctx context.Context, s *streams, n *session, wasm []byte, bindings []extension.Binding, request host.Request,
	do func(context.Context, host.Request) (host.Result, error),
) (output []byte, err error) {
	state := n.newState(s)
	defer func() { err = errors.Join(err, state.Close()) }()
	for _, b := range bindings {
		if _, ok := b.Grant.(capability.ToolCaller); ok {
			return nil, storedTools(b.Name)
		}
	}
	if err := c.namesNoSecret(bindings); err != nil {
		return nil, err
	}
	env, err := state.Env(ctx, bindings)
	if err != nil {
		return nil, err
	}
	kept, err := c.places(ctx, s, state, bindings)
	if err != nil {
		return nil, err
	}
	maps.Copy(env, request.Env)
	request.Env = env
	if wasm != nil && !n.record.off {
		calls := n.recorder(ctx, s, wasm)
		defer calls.close()
		request.Recorder = calls.recorder
	}
	result, err := do(ctx, request)
	kept(ctx)
	if err != nil {
		return nil, &boundError{error: err, specs: c.Bind}
	}
	return result.Output, nil
}

// bindings returns the bindings of the command line, then the manifest's, then the defaults.
func (c *callFlags) bindings() (*extension.Manifest, []extension.Binding, error) {
	given, err := extension.ParseSpecs(capabilities.Builtin, c.Bind)
	if err != nil {
		return nil, nil, err
	}
	var manifest *extension.Manifest
	var asked, defaults []extension.Binding
	if c.Manifest != "" {
		c.Manifest = manifestFile(c.Manifest)
		if manifest, err = readManifest(c.Manifest); err != nil {
			return nil, nil, err
		}
		if asked, err = ownRun(manifest, c.Manifest); err != nil {
			return nil, nil, err
		}
	}
	if !c.NoDefaults {
		defaults = extension.Defaults(capabilities.Builtin)
	}
	return manifest, extension.Merge(given, asked, defaults), nil
}

// readInput returns the input of a tool, or nil if none is given. It reads little more than the limit, which the host enforces.
func readInput(text string, stdin io.Reader, limit int) ([]byte, error) {
	const most = 64 << 20
	name, isFile := strings.CutPrefix(text, "@")
	switch {
	case text == "":
		return nil, nil
	case isFile:
		return readFile(name, int64(max(limit, most)))
	case text == "-":
		data, err := io.ReadAll(io.LimitReader(stdin, int64(max(limit, most))+1))
		if err != nil {
			return nil, usagef("read stdin: %w", err)
		}
		return data, nil
	default:
		return []byte(text), nil
	}
}

func names(tools []abi.Definition) []string {
	all := make([]string, len(tools))
	for i, t := range tools {
		all[i] = t.Name
	}
	return all
}
