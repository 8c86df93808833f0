package toolchain

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/internal/wasmbin"
)

// naps lets a call pass without sleep, so many times. After that, it sleeps each time.
type naps struct{ awake int }

func (*naps) Interface() string { return "test:gate/gate@1.0.0" }

func (*naps) Repeat(function string, _ []abi.Value) abi.Repeat {
	if function == "gate.ticket" {
		return abi.Derives
	}
	return abi.Reads
}

func (n *naps) Pass(context.Context) *abi.Pollable {
	p := new(abi.Pollable)
	if n.awake--; n.awake < 0 {
		p.Lasts(abi.Wait{At: time.Unix(1<<33, 0), State: []byte("nap")})
	} else {
		time.AfterFunc(10*time.Millisecond, p.SetReady) // the guest waits meanwhile, as one that sleeps does
	}
	return p
}

func (*naps) Ticket(_ context.Context, number uint32) *ticket { return &ticket{number} }

func (*naps) Restore(context.Context, string, []byte) (any, error) { return abi.Ready(), nil }

// wholeParts are what a program keeps: each is made once, and used between waits.
const wholeParts = `
	let k = 0, resolve: any;
	const deep = (n: number): number => n && 1 + deep(n - 1);
	const add = ((sum) => (n: number) => (sum += n))(1);
	function* counts() { let n = 0; try { for (;;) n += (yield n) ?? 1; } finally { k += 1000; } }
	async function* later() { for (let i = 0; ; i++) { await null; yield i; } }
	class Box { #n = 1n; static made = 0; constructor() { Box.made++; } get next() { return (this.#n *= 3n); } }
	const it = counts(), slow = later(), map = new Map<any, any>([["a", 1]]), weak = new WeakMap(), set = new Set<any>(), box = new Box(), re = /a(b+)/gy;
	const bytes = new Uint8Array(5000), view = new DataView(bytes.buffer, 8), floats = Float64Array.from([0.1, NaN, -0]), grown: any[] = [];
	const key = { key: 1 }, proxy = new Proxy(key, { get: (o: any, p) => p === "twice" ? 2 * o.key : o[p] }), sym = Symbol("s"), first = crypto.getRandomValues(new Uint8Array(8)).join();
	const pending = new Promise((r) => { resolve = r; }).then((v) => v + "!"), chain: string[] = [];
	pending.then((v) => chain.push("then " + v));
	weak.set(key, "weak"); let tickets = [await env.gate.ticket(1), await env.gate.ticket(2)];
	const use = async () => {
		key.key++; map.set({ k }, k).set("k" + k, [...map.keys()].length).delete("a"); set.add(sym).add(k % 3); bytes[k * 7] ^= 0x5a + k; view.setFloat32(16, Math.random()); floats[0] += Math.random();
		grown.push("text " + k + "é".repeat(k * 40), new Date(), () => k); if (k % 2) grown.shift(); tickets.push(await env.gate.ticket(10 + k)); if (tickets.length > 3) tickets.splice(1, 1);
		(globalThis as any).kept = grown; (Array.prototype as any)["k" + k] = k; re.lastIndex %= 6;
		return [++k, add(k), it.next(k).value ?? "over", (await slow.next()).value, String(box.next), Box.made, re.exec("abbabb")?.[1], re.lastIndex, proxy.twice, Math.random(), Date.now(),
			first, map.size, set.has(sym), weak.get(key), [...bytes].reduce((a, b) => a * 31 + b | 0, 7), floats.join(), grown.map((g) => typeof g === "function" ? g() : String(g)).join(), await Promise.all(tickets.map((t: any) => t.number())),
			new Error("here").stack!.split("\n").length, Object.keys(Array.prototype).join(), await env.gate === env.gate, chain.join()];
	};
	const seen: any[] = [];`

// wholeProgram waits three times. What it returns says what it had between.
const wholeProgram = wholeParts + `
	seen.push(await use()); await env.gate.pass(); seen.push(await use()); await env.gate.pass(); seen.push(await use());
	it.return!(undefined as any); resolve("resolved"); await pending; await env.gate.pass(); seen.push(await use());
	return [seen, deep(input.deep)];`

// newWhole builds the program in a host of its own.
func newWhole(t *testing.T) *host.Component {
	t.Helper()
	dir, key := cachetest.Dirs(t)
	h, err := host.New(t.Context(), host.Options{WIT: []string{gateWIT}, CacheDir: dir, KeyDir: key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	chain, err := New(t.Context(), h, Options{CacheDir: dir, KeyDir: key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = chain.Close() })
	c, err := chain.Build(t.Context(), wholeSource(wholeProgram))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func wholeSource(body string) Source {
	return Source{Entry: "t.ts", FS: fstest.MapFS{"t.ts": {Data: []byte(`import { extension } from "stile";
export default extension({ tools: { t: { description: "test", run: async (input: any, env: any) => { ` + body + ` } } } });`)}}}
}

// nap has the program go on from a state, or begin, until it sleeps or ends.
func nap(t *testing.T, c *host.Component, state []byte, awake int) (asleep, output []byte) {
	t.Helper()
	asleep, output, err := napWith(t, c, `{"deep": 0}`, state, awake)
	if err != nil {
		t.Fatal(err)
	}
	return asleep, output
}

func napWith(t *testing.T, c *host.Component, input string, state []byte, awake int) (asleep, output []byte, err error) {
	t.Helper()
	d := &host.Durable{Run: "r", Idle: time.Millisecond, Journal: drops{}, State: state}
	env := host.Env{"gate": &naps{awake}, "clock": clock.Fixed(time.Unix(1_800_000_000, 0)), "random": random.Seeded([32]byte{1})}
	r, err := c.Do(t.Context(), host.Request{Tool: "t", Input: []byte(input), Env: env, Durable: d, Limits: host.Limits{Wall: 10 * time.Second}})
	if s, ok := errors.AsType[*host.AsleepError](err); ok {
		return s.State, nil, nil
	}
	return nil, r.Output, err
}

// drops is a journal that nobody reads: the call only goes on from states.
type drops struct{}

func (drops) Append([]byte) error          { return nil }
func (drops) Commit(context.Context) error { return nil }

// wholeState is what a state says of memory and of the engine's table of handles.
type wholeState struct {
	Size   uint32   `json:"size"`
	Slots  []uint64 `json:"slots"`
	Free   []uint32 `json:"free"`
	Parked []uint64 `json:"parked"`

	Handles []struct {
		Rep      uint64          `json:"rep"`
		Resource string          `json:"resource"`
		Made     json.RawMessage `json:"made"`
	} `json:"handles"`

	memory []byte
}

// readWhole reads a state. Handles have numbers of the host that no guest sees: their places stand for them.
func readWhole(t *testing.T, state []byte) (w wholeState, table string) {
	t.Helper()
	length, n := binary.Uvarint(state[1:])
	text := state[1+n:][:length]
	if err := json.Unmarshal(text, &w); err != nil {
		t.Fatal(err)
	}
	what := map[uint64]string{0: "free"}
	for _, h := range w.Handles {
		what[h.Rep] = h.Resource + " " + string(h.Made)
	}
	var list []string
	for _, s := range append(w.Slots, w.Parked...) {
		list = append(list, what[s])
	}
	free, err := json.Marshal(w.Free)
	if err != nil {
		t.Fatal(err)
	}
	w.memory = state[1+n+int(length):]
	return w, strings.Join(append(list, string(free)), "\n")
}

const wholeEnv = "STILE_TEST_WHOLE_STATE"

// TestStateIsWhole compares a call that slept, and went on in fresh instances of this process, of another host and of another process, with one that kept its instance:
// all of its memory, its table of handles, and what it does later.
func TestStateIsWhole(t *testing.T) {
	if file := os.Getenv(wholeEnv); file != "" { // the other process
		state, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		state, _ = nap(t, newWhole(t), state, 0)
		if err := os.WriteFile(file, state, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	c := newWhole(t)
	_, want := nap(t, c, nil, 3)
	kept, _ := nap(t, c, nil, 2)
	for name, wake := range map[string]func(state []byte) []byte{
		"the same host": func(state []byte) []byte {
			state, _ = nap(t, c, state, 0)
			return state
		},
		"another host": func(state []byte) []byte {
			state, _ = nap(t, newWhole(t), state, 0)
			return state
		},
		"another process": func(state []byte) []byte {
			file := filepath.Join(t.TempDir(), "state")
			if err := os.WriteFile(file, state, 0o600); err != nil {
				t.Fatal(err)
			}
			other := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestStateIsWhole$")
			other.Env = append(os.Environ(), wholeEnv+"="+file)
			if out, err := other.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			state, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			return state
		},
	} {
		state, _ := nap(t, c, nil, 0)
		for range 2 {
			state = wake(state)
		}
		got, table := readWhole(t, state)
		expected, keptTable := readWhole(t, kept)
		for range 20 { // on a busy machine, what it waits for can be ready before it waits, which its memory shows
			if bytes.Equal(got.memory, expected.memory) {
				break
			}
			kept, _ = nap(t, c, nil, 2)
			expected, keptTable = readWhole(t, kept)
		}
		if got.Size != expected.Size || !bytes.Equal(got.memory, expected.memory) {
			t.Errorf("%s: the memory differs from that of a call that did not sleep: %d and %d bytes, %d and %d of changes", name, got.Size, expected.Size, len(got.memory), len(expected.memory))
		}
		if table != keptTable {
			t.Errorf("%s: it has the handles\n%s\nand a call that did not sleep\n%s", name, table, keptTable)
		}
		if _, output := nap(t, c, state, 0); !bytes.Equal(output, want) {
			t.Errorf("%s: it returns\n%s\nand a call that did not sleep\n%s", name, output, want)
		}
	}
}

// TestStackIsWhole has a call that slept three times recurse exactly as deep as one that kept its instance: the engine's stack begins where it did, which a global variable says.
func TestStackIsWhole(t *testing.T) {
	c := newWhole(t)
	deep := func(n, awake int) bool {
		var state, output []byte
		for output == nil {
			var err error
			if state, output, err = napWith(t, c, fmt.Sprintf(`{"deep": %6d}`, n), state, awake); err != nil {
				if limit, ok := errors.AsType[*host.LimitError](err); !ok || limit.Limit != "stack" {
					t.Fatal(err)
				}
				return false
			}
		}
		return true
	}
	most := sort.Search(1<<16, func(n int) bool { return !deep(n, 3) }) - 1
	if most < 100 || !deep(most, 0) || deep(most+1, 0) {
		t.Errorf("a call that did not sleep recurses %d times, and one that slept does not", most)
	}
}

// TestStateOfModules looks at all modules of a component that can sleep: their code changes no table, and drops and copies no passive segment. The only global variable
// that can change is the top of the engine's stack, which is where it began whenever a step is over: see TestStackIsWhole.
func TestStateOfModules(t *testing.T) {
	dir, key := cachetest.Dirs(t)
	h, err := host.New(t.Context(), host.Options{CacheDir: dir, KeyDir: key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	chain, err := New(t.Context(), h, Options{CacheDir: dir, KeyDir: key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = chain.Close() })
	_, read := chain.Engine()
	engine, err := read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, standalone := range []bool{true, false} {
		wasm, err := chain.Assemble(t.Context(), wholeSource(`await env.clock.sleep(1);`), standalone)
		if err != nil {
			t.Fatal(err)
		}
		modules := coreModules(t, wasm)
		if !standalone {
			modules = append(modules, engine)
		}
		changeable := 0
		for _, m := range modules {
			sections, err := wasmbin.ReadSections(m, wasmbin.CoreHeader)
			if err != nil {
				t.Fatal(err)
			}
			globals, reason := (&coreModule{sections: sections}).movable()
			if reason != "" {
				t.Errorf("a module of %d bytes: %s", len(m), reason)
			}
			changeable += len(globals)
		}
		if changeable != 1 || len(modules) < 3 {
			t.Errorf("%d modules have %d global variables that can change", len(modules), changeable)
		}
	}
	// What another module keeps outside of its memory is not written down, so its calls keep their instances.
	state := `(table 2 funcref) (func $f) (elem $e func $f) (data $d "x") (global $g (mut i64) (i64.const 1))
		(func $change (global.set $g (i64.add (global.get $g) (i64.const 1))) (table.init $e (i32.const 1) (i32.const 0) (i32.const 1)) (elem.drop $e) (data.drop $d))`
	other, err := Componentize(anyWorld, wat(t, core("", state, `(call $change) (call $number (global.get $g))`)))
	if err != nil {
		t.Fatal(err)
	}
	c, err := h.Load(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if c.Stepwise() {
		t.Error("calls of a module that keeps state outside of its memory could sleep")
	}
}

// coreModules are those of a component and of the components in it.
func coreModules(t *testing.T, wasm []byte) (modules [][]byte) {
	t.Helper()
	sections, err := wasmbin.ReadSections(wasm, wasmbin.ComponentHeader)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sections {
		switch s.ID {
		case wasmbin.SectionCoreModule:
			modules = append(modules, s.Body)
		case wasmbin.SectionComponent:
			modules = append(modules, coreModules(t, s.Body)...)
		}
	}
	return modules
}
