package contenders

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing/fstest"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/bench"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/toolchain"
)

const (
	stileBoundary = "WebAssembly, capability handles"
	stileLimits   = "memory, processor time, wall clock, handles, output"
)

var stile = &bench.Contender{
	Name: "stile", Title: "Stile, TypeScript", Boundary: stileBoundary, Limits: stileLimits,
	Level: bench.NewIsolate, Tasks: []bench.Task{bench.Compute, bench.File, bench.Work}, Own: true,
	Prepare: func(ctx context.Context, w *bench.Workbench, task bench.Task) (bench.Runner, error) {
		o, err := openOurs(ctx, w, task, 0)
		if err != nil {
			return nil, err
		}
		component, err := o.tools.Build(ctx, o.source(bench.Source(task, bench.StoredID)))
		if err != nil {
			return nil, errors.Join(err, o.Close())
		}
		return &stored{o, component}, nil
	},
}

var stileBuild = &bench.Contender{
	Name: "stile-build", Title: "Stile, built and called", Boundary: stileBoundary, Limits: stileLimits,
	Level: bench.NewCode, Tasks: []bench.Task{bench.Compute, bench.File},
	Prepare: func(ctx context.Context, w *bench.Workbench, task bench.Task) (bench.Runner, error) {
		o, err := openOurs(ctx, w, task, 0)
		return builder{o}, err
	},
}

var stileEval = &bench.Contender{
	Name: "stile-eval", Title: "Stile, evaluated", Boundary: stileBoundary, Limits: stileLimits,
	Level: bench.NewCode, Tasks: []bench.Task{bench.Compute, bench.File},
	Prepare: func(ctx context.Context, w *bench.Workbench, task bench.Task) (bench.Runner, error) {
		o, err := openOurs(ctx, w, task, 0)
		if err != nil {
			return nil, err
		}
		e, err := o.tools.Evaluator(ctx, o.source("").Bindings, false)
		if err != nil {
			return nil, errors.Join(err, o.Close())
		}
		return &evaluator{o, e}, nil
	},
}

// ours is this host as a program would embed it.
type ours struct {
	w     *bench.Workbench
	task  bench.Task
	host  *host.Host
	tools *toolchain.Toolchain
	files *workspace.Store
	env   host.Env
}

// openOurs opens a host for a number of live calls. 0 means the default.
func openOurs(ctx context.Context, w *bench.Workbench, task bench.Task, instances int) (_ *ours, err error) {
	o := &ours{w: w, task: task, env: host.Env{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, o.Close())
		}
	}()
	cache, key := filepath.Join(w.Dir, "stile-cache"), filepath.Join(w.Dir, "stile-key")
	if o.host, err = host.New(ctx, host.Options{Instances: instances, CacheDir: cache, KeyDir: key}); err != nil {
		return nil, err
	}
	if o.tools, err = toolchain.New(ctx, o.host, toolchain.Options{CacheDir: cache, KeyDir: key, Engine: w.Engine}); err != nil {
		return nil, err
	}
	if task == bench.File {
		dir, err := w.Folder("stile-files")
		if err != nil {
			return nil, err
		}
		if o.files, err = workspace.Open(ctx, filepath.Join(dir, "files.sqlite"), workspace.Options{}); err != nil {
			return nil, err
		}
		files := o.files.Workspace("bench")
		o.env["files"] = files
		return o, files.Write(ctx, "state", bench.NoState)
	}
	return o, nil
}

const plain = `import { extension } from "stile";
%s
export default extension({ tools: { tool: { description: "Works", input: { type: "object" }, run: tool } } });
`

// extensions turns a tool into an extension.
var extensions = map[bench.Task]string{
	bench.Compute: plain,
	bench.Work:    plain,
	bench.File: `import { extension } from "stile";
%s
export default extension({ tools: { tool: { description: "Works", input: { type: "object" }, run: (input, env) => tool(input, env.files) } } });
`,
	waits: `import { extension } from "stile";
%s
const input = { type: "object" };
export default extension({
  tools: {
    hold: { description: "Works, then waits", input, run: async (input, env) => { tool(input); await env.clock.sleep(1e9); } },
    active: { description: "Works, and waits a little", input, run: async (input, env) => { tool(input); await env.clock.sleep(100); } },
  },
});
`,
}

// waits is the tool of [bench.Compute] in isolates that are kept.
const waits bench.Task = "waits"

func (o *ours) source(tool string) toolchain.Source {
	fsys := fstest.MapFS{"tool.ts": {Data: fmt.Appendf(nil, extensions[o.task], tool)}}
	return toolchain.Source{FS: fsys, Entry: "tool.ts", Bindings: bindings[o.task]}
}

// bindings are what those extensions get.
var bindings = map[bench.Task]map[string]string{
	bench.Compute: {}, bench.Work: {},
	waits:      {"clock": clock.Interface},
	bench.File: {"files": workspace.Interface},
}

func (o *ours) Close() error {
	if o == nil {
		return nil
	}
	var errs []error
	if o.tools != nil {
		errs = append(errs, o.tools.Close())
	}
	if o.host != nil {
		errs = append(errs, o.host.Close())
	}
	if o.files != nil {
		errs = append(errs, o.files.Close())
	}
	return errors.Join(errs...)
}

// stored calls a loaded component. Each call has its own instance.
type stored struct {
	*ours
	component *host.Component
}

func (s *stored) Run(ctx context.Context, t bench.Trial) (bench.Answer, error) {
	out, err := s.component.Call(ctx, "tool", t.Input, s.env)
	return bench.Answer{Output: out}, err
}

// Hold keeps instances in another process that holds nothing else.
func (s *stored) Hold(ctx context.Context, n int) (bench.Held, error) {
	return holdProcess(s.w.Command(ctx, "", s.w.Self, "hold", strconv.Itoa(n), "--dir", s.w.Dir, "--engine", s.w.Engine))
}

// bodies make the body of a function of a tool, as code_run takes it.
var bodies = map[bench.Task]string{bench.Compute: "%s\nreturn tool(input)", bench.File: "%s\nreturn tool(input, env.files)"}

// evaluator runs sources without building components.
type evaluator struct {
	*ours
	evaluator *toolchain.Evaluator
}

func (e *evaluator) Run(ctx context.Context, t bench.Trial) (bench.Answer, error) {
	body := toolchain.Body(toolchain.Program{Text: fmt.Sprintf(bodies[e.task], t.Source)})
	r, err := e.evaluator.Do(ctx, body, host.Request{Tool: toolchain.BodyTool, Input: t.Input, Env: e.env})
	return bench.Answer{Output: r.Output}, err
}

func (e *evaluator) Close() error { return errors.Join(e.evaluator.Close(), e.ours.Close()) }

// builder builds a component of every source and calls it.
type builder struct{ *ours }

func (b builder) Run(ctx context.Context, t bench.Trial) (bench.Answer, error) {
	component, err := b.tools.Build(ctx, b.source(t.Source))
	if err != nil {
		return bench.Answer{}, err
	}
	out, err := component.Call(ctx, "tool", t.Input, b.env)
	return bench.Answer{Output: out}, errors.Join(err, component.Close())
}

// HoldStile keeps n instances that have worked and now wait, reports that in a line on out, and ends them when in ends.
func HoldStile(ctx context.Context, w *bench.Workbench, n int, in io.Reader, out io.Writer) (err error) {
	debug.SetMaxThreads(n + 10_000) // a call that waits keeps its thread
	o, err := openOurs(ctx, w, waits, n+10)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.Close()) }()
	component, err := o.tools.Build(ctx, o.source(bench.Source(bench.Compute, bench.StoredID)))
	if err != nil {
		return err
	}
	calls, end := context.WithCancel(ctx)
	defer end()
	waiting, ended := make(chan struct{}, n), make(chan error, n)
	starting := 2 * runtime.GOMAXPROCS(0) // as many as can run; more would only get in each other's way
	for i := range n + starting {
		if i < n {
			go func() {
				_, err := component.Call(calls, "hold", bench.HoldInput(), host.Env{"clock": waitingClock{waiting}})
				ended <- err
			}()
		}
		if i < starting {
			continue
		}
		select {
		case <-waiting:
		case err := <-ended:
			return fmt.Errorf("a call did not wait: %w", err)
		}
	}
	debug.FreeOSMemory()
	if _, err := fmt.Fprintln(out, "ready"); err != nil {
		return err
	}
	_, _ = bufio.NewReader(in).ReadString('\n') // until it ends
	end()
	for range n {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			return fmt.Errorf("a call ended by itself: %w", err)
		}
	}
	return nil
}

// waitingClock is a clock on which every wait lasts until the call ends.
type waitingClock struct{ waiting chan<- struct{} }

func (waitingClock) Interface() string { return clock.Interface }

// Now is 1970.
func (waitingClock) Now(context.Context) uint64 { return 0 }

// Monotonic is always 0.
func (waitingClock) Monotonic(context.Context) uint64 { return 0 }

// Subscribe reports that a call waits.
func (c waitingClock) Subscribe(context.Context, uint64) *abi.Pollable {
	c.waiting <- struct{}{}
	return new(abi.Pollable)
}
