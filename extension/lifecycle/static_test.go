package lifecycle

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/guest-sdk/typescript"
)

// problemsOf returns what is wrong with a draft.
func problemsOf(t *testing.T, m *Manager, d Draft) *extension.ProblemsError {
	t.Helper()
	_, err := m.Write(t.Context(), d)
	found, ok := errors.AsType[*extension.ProblemsError](err)
	if !ok {
		t.Fatalf("got %v", err)
	}
	return found
}

// Everything that is wrong with a manifest and with the code comes at once.
func TestAllProblemsAtOnce(t *testing.T) {
	h := newHome(t)
	h.options.Types = newTypes(t, h.options.Toolchain)
	m := h.open()
	d := draft("a", `1`, "")
	d.Manifest = []byte(`{"name": "A b", "verzion": "1", "description": "A test", "tools": ["got"], "permissions": {"kv": true},
 "tests": [{"tool": "get", "input": {}}, {"tool": "got", "input": {}, "expect": 1, "enw": {}}]}`)
	d.Files["tool.ts"] = []byte(`import { extension } from "stile";
import { gone } from "./gone";
export default extension({ tools: { get: { description: "Gets a value", input: { type: "object" }, run: async (input, env) => {
  const n: number = "one", m = gone;
  await env.kvv.get("a");
  await env.kv.fetch("a");
  new WebSocket("wss://example.com");
  return fetch("https://example.com/");
} } } });`)
	found := problemsOf(t, m, d)
	if found.Stage != extension.StageValidate {
		t.Errorf("stage %s", found.Stage)
	}
	text := found.Error()
	for _, want := range []string{
		`"A b" does not have this form`, "there is no such field", `the field "version" is missing`, `"get" is not among the tools`, "tests[1].enw",
		"which is not in the code", "./gone", "TS2322", "kvv", "Property 'fetch' does not exist", "WebSocket", "there are no sockets", "fetch needs the binding network",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("nothing says %q in\n%s", want, text)
		}
	}
	seen := map[string]bool{}
	for _, p := range found.Problems {
		if at := p.String(); seen[at] {
			t.Errorf("twice: %s", at)
		} else {
			seen[at] = true
		}
	}
}

// What can only fail is a problem of the draft, also without types; code that asks first is not.
func TestFaults(t *testing.T) {
	h := newHome(t)
	m := h.open()
	for _, test := range []struct{ name, code, permissions, want string }{
		{"unasked", `await env.store.get("a")`, "", "env.store is used, and the manifest does not ask for it"},
		{"nearest", `await env.kw.get("a")`, `{"kv": true}`, "env.kv"},
		{"taken", `((_, { store }) => store.get("a"))(1, env)`, "", ""},
		{"asked", `"store" in env ? await (env as any).store.get("a") : 0`, "", ""},
		{"fetch", `await (await fetch("https://example.com/")).text()`, "", "fetch needs the binding network"},
		{"data", "typeof fetch(`data:text/plain,a`)", "", ""},
		{"another host", `typeof fetch("https://example.org/a")`, `{"network": ["example.com"]}`, "no http binding of the manifest allows the host example.org"},
		{"host", `typeof fetch("https://example.com/a")`, `{"network": ["example.com"]}`, ""},
		{"computed host", "typeof fetch(`https://${input}.example.org/a`)", `{"network": ["example.com"]}`, ""},
		{"host with an end", `typeof fetch("https://example.com" + input)`, `{"network": ["example.org"]}`, ""},
		{"read-only", `await env.workspace.write("a", "b")`, `{"workspace": "read"}`, "env.workspace.write is always denied: the binding may only read"},
		{"read-write", `typeof env.workspace.write`, `{"workspace": "read-write"}`, ""},
		{"absent", `document.title`, "", "document does not exist here"},
		{"asked for absent", `typeof document === "undefined" ? 1 : document.title`, "", ""},
		{"own", `((document: any) => document.title)({})`, "", ""},
		{"present", `new URL("https://example.com/").host`, "", ""},
		{"key", `({ process: 1 }).process`, "", ""},
		{"method", `({ require(a: string) { return a } }).require("a")`, "", ""},
		{"comment", "1 /* new WebSocket() */", "", ""},
	} {
		d := draft("a", test.code, test.permissions)
		_, err := m.Write(t.Context(), d)
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: got %v", test.name, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: got %v, want %s", test.name, err, test.want)
		}
	}
}

// A name that code only may not find is asked of the engine, so no list goes stale.
func TestExist(t *testing.T) {
	h := newHome(t)
	m := h.open()
	_, platform, _ := strings.Cut(typescript.Author(), "ECMAScript 2025 with ")
	platform, _, _ = strings.Cut(platform, ", timers, console,")
	names := strings.Split(platform, ", ")
	described, err := m.exist(t.Context(), names)
	if err != nil || len(names) < 10 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		if !described[name] {
			t.Errorf("%s is described to authors and does not exist", name)
		}
	}
	there, err := m.exist(t.Context(), []string{"URL", "WebSocket", "structuredClone"})
	if err != nil || !there["URL"] || there["WebSocket"] || !there["structuredClone"] {
		t.Errorf("got %v, %v", there, err)
	}
}

// A person at a terminal is not held to the limit of builds; agents are.
func TestPersonIsNotCounted(t *testing.T) {
	h := newHome(t)
	h.policyOf(`{"limits": {"buildsPerHour": 1}}`)
	m := h.open()
	for _, value := range []string{"1", "2", "3"} {
		d := draft("one", value, "")
		d.Author, d.Scope, d.Via = "user:ada", extension.Scope{Kind: extension.User, Owner: "ada"}, ViaTerminal
		write(t, m, d)
	}
	for i, value := range []string{"1", "2"} {
		d := draft("two", value, "")
		d.Via = ViaTerminal // an agent does not become a person by it
		if _, err := m.Write(t.Context(), d); errors.As(err, new(*BudgetError)) != (i == 1) {
			t.Errorf("build %d: %v", i, err)
		}
	}
}

// Bindings that cannot be read, beside more problems than are told, end no more than the draft. What is bundled for a draft with a faulty manifest counts.
func TestFaultyBindings(t *testing.T) {
	h := newHome(t)
	h.options.Types = newTypes(t, h.options.Toolchain)
	h.policyOf(`{"limits": {"buildsPerHour": 4}}`)
	m := h.open()
	var unknown strings.Builder
	for i := range 25 {
		fmt.Fprintf(&unknown, `"x%d": 1, `, i)
	}
	for _, before := range []string{"", unknown.String()} {
		for _, d := range []Draft{draft("a", "1", ""), draft("a", "1", "")} {
			d.NoTypes = before != ""
			d.Manifest = []byte(`{` + before + `"name": "a", "version": "1.0.0", "description": "A test", "tools": ["get"], "bindings": {"kv": {"kv": 1}, "t": {"no-kind": {}}}}`)
			if text := problemsOf(t, m, d).Error(); !strings.Contains(text, "bindings.kv") && before == "" {
				t.Errorf("got %s", text)
			}
		}
	}
	if _, err := m.Write(t.Context(), draft("a", "1", "")); !errors.As(err, new(*BudgetError)) {
		t.Errorf("there is a fifth build: %v", err)
	}
}

// A tool that no call can succeed with is a problem of the draft.
func TestImpossibleTools(t *testing.T) {
	m := newHome(t).open()
	for schema, want := range map[string]string{
		`input: { type: "object", required: ["a"], properties: { a: { type: "string", enum: [] } } }`:  "no input can satisfy the schema of the tool get, so each call would fail: /properties/a/enum: the property",
		`input: { type: "object", required: ["a"], additionalProperties: false }`:                      `the property "a" is required, and additionalProperties forbids it; write one that inputs can satisfy`,
		`input: { type: "object" }, output: { type: "number", minimum: 2, maximum: 1 }`:                "no result can satisfy the schema of the tool get",
		`input: { type: "object", properties: { a: { type: "string", minLength: 2, maxLength: 1 } } }`: "",
	} {
		d := tool("a", "get", `import { extension } from "stile";
export default extension({ tools: { get: { description: "Gets", `+schema+`, run: async () => 2 } } });`, "")
		_, err := m.Write(t.Context(), d)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v", schema, err)
		}
	}
	d := draft("b", `1`, `{"workspace": "read"}`)
	d.Files["tool.ts"] = []byte(`import { readFileSync } from "node:fs";
import { extension } from "stile";
export default extension({ tools: { get: { description: "Gets", run: async () => readFileSync("a", "utf8") } } });`)
	if _, err := m.Write(t.Context(), d); err == nil || !strings.Contains(err.Error(), `tool.ts:1:1: node's module fs has no files here`) || !strings.Contains(err.Error(), `"fs": "workspace" in the manifest`) {
		t.Errorf("got %v", err)
	}
}
