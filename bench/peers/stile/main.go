// Command stile keeps runs with Stile, for the benchmark of durable runs. STEPS says what a step is: "own", an operation of a capability of this program,
// of which Stile knows nothing, "kv", a change of a number in kv, or "go", a step of a run of Go code.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing/fstest"
	"time"

	"github.com/stilehost/stile/bench/peers/protocol"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/durable"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/toolchain"
)

const source = `import { extension } from "stile";
export default extension({ tools: { work: { description: "Works.", input: { type: "object" }, run: async ({ before, wait, after }: any, env: any) => {
  let made = 0;
  const steps = async (n: number) => {
    for (let i = 0; i < n; i++) {
      STEP;
      made++;
    }
  };
  await steps(before);
  if (wait) await env.clock.sleep(wait);
  await steps(after);
  return made;
} } } });`

// ways say how a tool makes a step.
var ways = map[string]string{"own": "env.counter.step()", "kv": `await env.store.increment("steps", 1)`}

const counterInterface = "bench:peers/counts@1.0.0"

const counterWIT = `package bench:peers@1.0.0;
interface counts {
  resource counter { step: func() -> s64; }
}`

// counter is a capability. Its operations have effects, and cannot be repeated.
type counter struct{}

// Interface implements [abi.Capability].
func (counter) Interface() string { return counterInterface }

// Step is `step`.
func (counter) Step(context.Context) int64 { return protocol.Step() }

// work is the same in Go.
func work(ctx context.Context, w protocol.Work) (made int, err error) {
	steps := func(n int) error {
		for range n {
			if _, err := durable.Step(ctx, "step", func(context.Context) (int64, error) { return protocol.Step(), nil }); err != nil {
				return err
			}
			made++
		}
		return nil
	}
	if err := steps(w.Before); err != nil {
		return 0, err
	}
	if w.Wait > 0 {
		if err := durable.Sleep(ctx, time.Duration(w.Wait)*time.Millisecond); err != nil {
			return 0, err
		}
	}
	err = steps(w.After)
	return made, err
}

type peer struct {
	runs *durable.Runs
	spec durable.Spec
	dir  string
}

func (p *peer) start(ctx context.Context, id string, w protocol.Work) (string, error) {
	s := p.spec
	s.Key = id
	var err error
	if s.Input, err = json.Marshal(w); err != nil {
		return "", err
	}
	info, _, err := p.runs.Start(ctx, s)
	return info.Name, err
}

// Start implements [protocol.Peer].
func (p *peer) Start(ctx context.Context, id string, w protocol.Work) error {
	_, err := p.start(ctx, id, w)
	return err
}

// End implements [protocol.Peer]. The same key finds the same run.
func (p *peer) End(ctx context.Context, id string, w protocol.Work) (n int, err error) {
	name, err := p.start(ctx, id, w)
	if err != nil {
		return 0, err
	}
	r, err := p.runs.Wait(ctx, name)
	if err == nil {
		err = r.Err()
	}
	if err != nil {
		return 0, err
	}
	return n, json.Unmarshal(r.Output, &n)
}

// Size implements [protocol.Peer].
func (p *peer) Size(context.Context) (n int64, err error) {
	for _, suffix := range []string{"", "-wal"} {
		info, err := os.Stat(filepath.Join(p.dir, durable.File+suffix))
		if err != nil {
			return 0, err
		}
		n += info.Size()
	}
	return n, nil
}

// build makes the component, or reads that of the process before: a user's is in the cache as well.
func build(ctx context.Context, h *host.Host, dir string) (s durable.Spec, err error) {
	way := ways[os.Getenv("STEPS")]
	if way == "" {
		return durable.Spec{Function: "work"}, nil
	}
	s.Tool = "work"
	component, engine := filepath.Join(dir, "component.wasm"), filepath.Join(dir, "engine.wasm")
	wasm, err := os.ReadFile(component)
	if err == nil {
		var module []byte
		module, err = os.ReadFile(engine)
		s.Component, s.Modules = durable.CodeOf(wasm), modules(module)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	t, err := toolchain.New(ctx, h, toolchain.Options{})
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	wasm, err = t.Assemble(ctx, toolchain.Source{
		FS: fstest.MapFS{"tool.ts": {Data: []byte(strings.Replace(source, "STEP", way, 1))}}, Entry: "tool.ts", Bindings: map[string]string{"store": kv.Interface, "clock": clock.Interface, "counter": counterInterface},
	}, false)
	if err != nil {
		return s, err
	}
	_, read := t.Engine()
	module, err := read(ctx)
	if err != nil {
		return s, err
	}
	s.Component, s.Modules = durable.CodeOf(wasm), modules(module)
	return s, errors.Join(os.WriteFile(component, wasm, 0o600), os.WriteFile(engine, module, 0o600))
}

func modules(module []byte) durable.Modules {
	return durable.Modules{host.ModuleName(module): durable.CodeOf(module).Read}
}

func main() {
	protocol.Serve(func(ctx context.Context, dir string) (protocol.Peer, error) {
		keys := filepath.Join(dir, "keys")
		if err := os.MkdirAll(keys, 0o700); err != nil {
			return nil, err
		}
		h, err := host.New(ctx, host.Options{WIT: []string{counterWIT}, CacheDir: filepath.Join(dir, "cache"), KeyDir: keys})
		if err != nil {
			return nil, err
		}
		store, err := kv.Open(ctx, filepath.Join(dir, "kv.db"), kv.Options{})
		if err != nil {
			return nil, err
		}
		p := &peer{dir: dir}
		if p.spec, err = build(ctx, h, dir); err != nil {
			return nil, err
		}
		p.runs, err = durable.Open(ctx, durable.Options{
			Dir: dir, Key: make([]byte, durable.KeySize), Host: h, Live: 200,
			Functions: map[string]durable.Function{"work": durable.Func(work)},
			Request: func(context.Context, durable.Info) (durable.Authority, error) {
				return durable.Authority{Request: host.Request{
					Env:    host.Env{"clock": clock.System(), "store": store.Bucket("b"), "counter": counter{}},
					Limits: host.Limits{CPU: time.Hour, Wall: time.Hour},
					Observe: func(o host.Operation) {
						if strings.HasSuffix(o.Func, "bucket.increment") {
							protocol.Step()
						}
					},
				}}, nil
			},
		})
		if err != nil {
			return nil, err
		}
		p.runs.Work()
		return p, nil
	})
}
