package lifecycle

import (
	"strings"
	"testing"

	"github.com/stilehost/stile/extension"
)

// TestIndependentFaults writes drafts with several faults that have nothing to do with each other. All are in the first answer, and nothing else
// is: no problem that only follows from another.
func TestIndependentFaults(t *testing.T) {
	h := newHome(t)
	h.options.Types = newTypes(t, h.options.Toolchain)
	h.options.Packages = newPackages(t)
	h.policyOf(`{"ceiling": {"permissions": {"kv": true, "workspace": "read-write", "network": ["example.com"]}}}`)
	m := h.open()
	const head = `"name": "a", "version": "1.0.0", "description": "A test", `
	one := func(body string) string {
		return `import { extension } from "stile";
export default extension({ tools: { get: { description: "Gets", run: async (input: any, env) => { ` + body + ` } } } });`
	}
	for name, test := range map[string]struct {
		manifest, code string
		want           []string
	}{
		"a field of one binding, another binding, a type": {
			head + `"tools": ["get"], "permissions": {"kv": true}, "bindings": {"files": {"workspace": {"pth": "/a"}}}`,
			one(`await env.files.write("a", "b");
await env.notes.read("a");
const n: number = "one";
return await env.kv.fetch(String(n));`),
			[]string{`bindings.files.workspace.pth: there is no such field`, `'notes' does not exist on type 'Env'`, "TS2322", `'fetch' does not exist on type 'Kv'`},
		},
		"the same without types": {
			head + `"tools": ["get"], "permissions": {"kv": 1, "netwrk": ["example.com"]}, "bindings": {"files": {"workspce": {}}, "my-files": {"workspace": {}}}`,
			`import { extension } from "stile";
export default extension({ tools: { get: { description: "Gets", run: async (input: any, env: any) => {
await env.files.write("a", "b"); await env.kv.get("a"); await env.my_files.list(); await fetch("https://example.com/");
await env.notes.read("a");
return document.title; } } } });`,
			[]string{`permissions.kv: a number`, `permissions.netwrk: there is no such field`, `bindings.files.workspce: there is no such field`, `"my-files" must start with a-z`, `env.notes is used`, "TS2584"},
		},
		"imports, a package, schemas": {
			head + `"tools": ["bad", "never", "good"], "dependencies": {"zod": "^99.0.0"}`,
			`import { extension } from "stile";
import { gone } from "./gone";
import net from "node:net";
import { z } from "zod";
import missing from "stile-has-no-such-package";
const parsed = z.object({ a: missing.thing });
export default extension({ tools: {
  bad: { description: "Bad", input: { type: "objekt" } as any, run: async () => gone(net) },
  never: { description: "Never", input: { type: "object", required: ["a"], properties: { a: { type: "string", enum: [] } } }, run: async () => parsed },
  good: { description: "Good", run: async () => 1 },
} });`,
			[]string{`./gone`, `node:net`, `zod@^99.0.0`, `"stile-has-no-such-package" is not in the registry`, `tools.bad.input: the schema of an input has type`, "no input can satisfy the schema of the tool never"},
		},
		"an import, the tools of the manifest, a schema": {
			head + `"tools": ["get", "set"]`,
			`import { extension } from "stile";
import { gone } from "./gone";
const tools: any = { get: { description: "Gets", input: { type: "object", required: ["a"], additionalProperties: false }, run: async () => gone() } };
const n: number = "one";
export default extension({ tools });`,
			[]string{"./gone", "TS2322", "no input can satisfy the schema of the tool get", `"set" is in the manifest but not in the code`},
		},
		"two schemas and a type": {
			head + `"tools": ["end", "get", "put", "set"]`,
			`import { extension } from "stile";
const n: number = "one";
export default extension({ tools: {
  get: { description: "Gets", input: { type: "objekt" } as any, run: async () => n },
  set: { description: "Sets", input: { type: "nmber" } as any, run: async () => n },
  end: { description: "Ends", output: { type: "nmber" } as any, run: async () => n },
  put: { description: "Puts", output: { type: "number", minimum: 2, maximum: 1 }, run: async () => 1 },
} });`,
			[]string{"TS2322", `tools.get.input: the schema of an input has type`, `tools.set.input: the schema of an input has type`, `tool "end": output schema`, "no result can satisfy the schema of the tool put"},
		},
		"each part of a manifest": {
			`"name": "a", "version": "1", "description": "", "tools": ["get", "Got"], "tags": ["A", "b c"], "dependencies": {"zod": "git+ssh://x"},
 "permissions": {"network": ["https://example.com/a", "b c"]}, "vars": {"team": {"type": "txt"}}`,
			one(`await fetch("https://example.org/"); return (env as any).vars.team;`),
			[]string{"version:", "description: the description is empty", "tools[1]", "tags[0]", "tags[1]", "dependencies.zod", "permissions.network[0]", "permissions.network[1]", "vars.team.type"},
		},
		"tests": {
			head + `"tools": ["get"], "permissions": {"kv": true}, "fs": "kv", "tests": [
{"tool": "got", "input": {}, "expect": 1, "error": "a"}, {"name": "", "tool": "get", "expect": 1},
{"tool": "get", "input": {}, "expect": 1, "env": {"kv": {"a": {"wrong": 1}}}}, {"tool": "get", "input": {}, "expect": 1, "env": {"kb": {}}}]`,
			one(`await env.notes.read("a"); return 1;`),
			[]string{"fs:", `tests[0].tool: "got" is not among the tools`, `tests[0]: a test has one of`, `tests[1]: the field "input" is missing`, "tests[1].name: the name of the test is empty", "tests[3].env.kb", "tests[2].env.kv: the answers", "'notes' does not exist"},
		},
		"a manifest that is no manifest": {
			head + `"tols": ["get"], "bindngs": {"notes": {"workspace": {}}}, "version": 1`,
			one(`await env.notes.read("a"); const n: number = "one"; return new WebSocket("wss://example.com/" + n);`),
			[]string{"this field appears twice", "TS2322", "WebSocket"},
		},
		"a manifest with unknown fields": {
			head + `"tols": ["get"], "bindngs": {"notes": {"workspace": {}}}`,
			one(`await env.notes.read("a"); const n: number = "one"; return new WebSocket("wss://example.com/" + n);`),
			[]string{"tols: there is no such field", "bindngs: there is no such field", `the field "tools" is missing`, "TS2322", "WebSocket"},
		},
		"syntax beside the rest": {
			head + `"tools": ["get"], "permissions": {"kv": 1}`,
			one("await env.kv.get(\"a\"); await env.notes.read(\"a\");\nconst = 1;\nreturn 1;"),
			[]string{"permissions.kv", `Expected identifier but found "="`, "env.notes is used"},
		},
		"another manifest and a failing test": {
			`"name": "a", "version": "1.0", "description": "A test", "tools": ["get"], "tests": [{"tool": "get", "input": {}, "expect": 2}, {"tool": "get", "input": {}, "expect": 1}]`,
			one(`return 1;`),
			[]string{"version:", `test "tests[0]" of "get"`},
		},
		"a ceiling": {
			head + `"tools": ["get"], "permissions": {"network": ["example.org"]}`,
			one(`const n: number = "one"; return env.notes.read(n);`),
			[]string{"TS2322", "'notes' does not exist", "the policy's ceiling forbids the binding network"},
		},
		"top-level code": {
			head + `"tools": ["get"], "permissions": {"kv": true, "clok": true}`,
			`import { extension } from "stile";
const n: number = "one";
throw new Error("at the top");
export default extension({ tools: { get: { description: "Gets", run: async () => n } } });`,
			[]string{"permissions.clok", "TS2322", "at the top"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := Draft{Scope: own, Author: own.String(), Via: "test", Manifest: []byte("{" + test.manifest + "}"), Files: map[string][]byte{"tool.ts": []byte(test.code)}}
			problems := problemsOf(t, m, d).Problems
			for _, want := range test.want {
				if at := find(problems, want); len(at) != 1 {
					t.Errorf("%d problems say %q", len(at), want)
				}
			}
			for _, p := range problems {
				known := false
				for _, want := range test.want {
					known = known || strings.Contains(shown(p), want)
				}
				if !known {
					t.Errorf("it is not known, or follows from another: %s", p)
				}
			}
			if t.Failed() {
				for _, p := range problems {
					t.Log(p)
				}
			}
		})
	}
}

// shown is a problem without the line of its source.
func shown(p extension.Problem) string {
	p.Snippet = ""
	return p.String()
}

func find(problems []extension.Problem, text string) (at []int) {
	for i, p := range problems {
		if strings.Contains(shown(p), text) {
			at = append(at, i)
		}
	}
	return at
}
