package toolchain

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/host"
)

// A method that the object of a capability lacks is named in the error, with those that it has. Other errors stay as the engine made them.
func TestMissingMethod(t *testing.T) {
	s := newScripts(t)
	env := host.Env{"notes": s.workspace.Workspace("missing"), "store": s.kv.Bucket("missing")}
	const notes = "; a workspace has: read, readLines, readBytes, "
	for _, c := range []struct{ name, body, want string }{
		{"a method", `return await env.notes.exists("a")`, "TypeError: env.notes.exists is not a function" + notes},
		{"another kind", `return await env.store.put("a", "b")`, "TypeError: env.store.put is not a function; a binding of kv has: get, set, delete, list, increment, compareAndSet"},
		{"by another name", `const w = env.notes; return w.exists("a")`, "env.notes.exists is not a function" + notes},
		{"in a callback", `return ["a"].map((x) => env.notes.exists(x))`, "env.notes.exists is not a function" + notes},
		{"as a callback", `return ["a"].map(env.notes.exists)`, "env.notes.exists is not a function" + notes},
		{"with calls in its arguments", `const f = (x) => x; return env.notes.exists(f(1), await f(2), f("x".repeat(3)))`, "env.notes.exists is not a function" + notes},
		{"a derived handle", `return env.notes.readOnly().exists("a")`, "exists is not a function" + notes},
		{"caught", `try { env.notes.exists() } catch (e) { return e.message.slice(0, 34) }`, `"env.notes.exists is not a function"`},
		{"a response", `return new Response("a").txt()`, "TypeError: txt is not a function; a response or request has: "},
		{"a Blob", `return new Blob(["a"]).json()`, "TypeError: json is not a function; a Blob has: size, type, text, "},
		{"a name that is nearly right", `return env.notess.read("a")`, "UnboundError: env.notess is not bound (bound: notes, store); did you mean env.notes?"},
		{"a name that is nothing like it", `return env.github.read("a")`, "UnboundError: env.github is not bound (bound: notes, store)"},

		{"asked for first", `if (env.notes.exists) return 1; await env.notes.write("b", "c"); const pad = "x".repeat(60) + "y".repeat(60) + "z".repeat(70) + input.a; const o = {}; return o.x()`, "TypeError: not a function"},
		{"of another object", `const o = {}; return o.exists()`, "TypeError: not a function"},
		{"like any object", `return [typeof env.notes.then, typeof env.notes.toString, String(env.notes), JSON.stringify(env.store), "read" in env.notes, "exists" in env.notes]`, `["undefined","function","[object Object]","{}",true,false]`},
		{"its keys", `const seen = []; for (const k in env.store) seen.push(k); return seen.join()`, `"get,set,delete,list,increment,compareAndSet"`},
		{"a broken prototype", `Object.prototype.x = 1; return env.notes.x`, `1`},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := `import { extension } from "stile"; export default extension({ tools: { t: { description: "Tests", run: async (input, env) => {` + c.body + `} } } });`
			component, err := s.toolchain.Build(t.Context(), Source{
				FS: fstest.MapFS{"t.ts": &fstest.MapFile{Data: []byte(text)}}, Entry: "t.ts", Bindings: map[string]string{"notes": workspace.Interface, "store": kv.Interface},
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = component.Close() })
			result, err := component.Call(t.Context(), "t", []byte("{}"), env)
			got := string(result)
			if err != nil {
				got = strings.TrimPrefix(err.Error(), "tool failed: ")
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
