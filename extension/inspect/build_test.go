package inspect_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/extension/inspect"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/toolchain"
)

func newToolchain(t *testing.T) *toolchain.Toolchain {
	t.Helper()
	dir, keyDir := cachetest.Dirs(t)
	h, err := host.New(t.Context(), host.Options{CacheDir: dir, KeyDir: keyDir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	chain, err := toolchain.New(t.Context(), h, toolchain.Options{CacheDir: dir, KeyDir: keyDir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = chain.Close() })
	return chain
}

// deriveAndBuild builds the module derived from files, and checks that the host sees the derived tools.
func deriveAndBuild(t *testing.T, chain *toolchain.Toolchain, files fstest.MapFS, entry string) *host.Component {
	t.Helper()
	d, err := inspect.Derive(files, entry)
	if err != nil {
		t.Fatal(err)
	}
	all := maps.Clone(files)
	all[d.Entry] = &fstest.MapFile{Data: d.Text}
	c, err := chain.Build(t.Context(), toolchain.Source{FS: all, Entry: d.Entry})
	if err != nil {
		t.Fatalf("%v\n%s", err, d.Text)
	}
	tools, err := c.Tools(t.Context())
	if err != nil {
		t.Fatalf("%v\n%s", err, d.Text)
	}
	if !reflect.DeepEqual(normal(t, tools), normal(t, d.Tools)) {
		t.Fatalf("the host sees %+v\nderived %+v", tools, d.Tools)
	}
	return c
}

// normal is definitions with their schemas as values.
func normal(t *testing.T, list []abi.Definition) []any {
	var all []any
	for _, d := range list {
		var input, output any
		if err := json.Unmarshal([]byte(d.InputSchema), &input); err != nil {
			t.Fatal(err)
		}
		if d.OutputSchema != nil {
			if err := json.Unmarshal([]byte(*d.OutputSchema), &output); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, []any{d.Name, d.Description, input, output, d.Annotations})
	}
	return all
}

// Plain functions become tools that can be called.
func TestDerivedToolsWork(t *testing.T) {
	chain := newToolchain(t)
	c := deriveAndBuild(t, chain, fstest.MapFS{
		"src/tool.ts": {Data: []byte(`
import { scale, type Place } from "./place";
import type { Unit } from "./place.js";

/** Distance between two places, in kilometres. */
export function haversine(lat1: number, lon1: number, lat2: number, lon2: number, unit: Unit = "km"): number {
  const rad = (d: number) => d * Math.PI / 180;
  const a = Math.sin(rad(lat2 - lat1) / 2) ** 2 + Math.cos(rad(lat1)) * Math.cos(rad(lat2)) * Math.sin(rad(lon2 - lon1) / 2) ** 2;
  return Math.round(2 * 6371 * Math.asin(Math.sqrt(a)) * scale[unit]);
}
export const middleOf = async (places: Place[], name?: string): Promise<Place> => ({ ...places[Math.floor(places.length / 2)]!, name });
export function joinAll(separator: string, ...parts: string[]) { return parts.join(separator); }
export async function bindings({ prefix = "-" }: { prefix?: string }, env) { return Object.keys(env).map((name) => prefix + name); }
function counted(this_: number, env: Env) { return [this_, Object.keys(env).length]; }
interface Env {}
export { counted as extension };
`)},
		"src/place.ts": {Data: []byte(`export type Unit = "km" | "miles";
export const scale = { km: 1, miles: 0.621371 };
export interface Place { latitude: number; longitude: number; name?: string }`)},
	}, "src/tool.ts")
	defer func() { _ = c.Close() }()
	for _, tt := range []struct{ tool, input, want string }{
		{"haversine", `{"lat1":48.8566,"lon1":2.3522,"lat2":51.5074,"lon2":-0.1278}`, `344`},
		{"haversine", `{"lat1":48.8566,"lon1":2.3522,"lat2":51.5074,"lon2":-0.1278,"unit":"miles"}`, `213`},
		{"haversine", `{"lat1":48.8566,"lon1":2.3522,"lat2":51.5074,"lon2":-0.1278,"unit":"feet"}`, `/unit`},
		{"haversine", `{"lat1":48.8566}`, `missing properties`},
		{"haversine", `{"lat1":1,"lon1":1,"lat2":1,"lon2":"1"}`, `/lon2`},
		{"haversine", `{"lat1":1,"lon1":1,"lat2":1,"lon2":1,"x":1}`, `additional properties 'x' not allowed`},
		{"middle_of", `{"places":[{"latitude":1,"longitude":2}],"name":"a"}`, `{"latitude":1,"longitude":2,"name":"a"}`},
		{"middle_of", `{"places":[{"latitude":1}]}`, `missing property 'longitude'`},
		{"join_all", `{"separator":"-","parts":["a","b"]}`, `"a-b"`},
		{"join_all", `{"separator":"-"}`, `""`},
		{"bindings", `{}`, `["-dice"]`},
		{"bindings", `{"prefix":"+"}`, `["+dice"]`},
		{"extension", `{"this_":7}`, `[7,1]`},
	} {
		out, err := c.Call(t.Context(), tt.tool, []byte(tt.input), host.Env{"dice": random.System()})
		invalid, ok := errors.AsType[*host.InputError](err)
		if ok && strings.Contains(fmt.Sprintf("%+v", invalid.Problems), tt.want) {
			continue
		}
		if err != nil || string(out) != tt.want {
			t.Errorf("%s %s: got %s, %v, want %s", tt.tool, tt.input, out, err, tt.want)
		}
	}
}

// written is a type in TypeScript, with values that it has and values that it does not have.
type written struct {
	text      string
	good, bad []any
}

// types generates types of some depth, made without the code that makes their schemas.
func types(depth int) *rapid.Generator[written] {
	return rapid.Custom(func(t *rapid.T) written {
		plain := []written{
			{"string", []any{"", "text"}, []any{1.0, nil, []any{}}},
			{"number", []any{0.0, -1.5}, []any{"1", nil, true}},
			{"boolean", []any{true, false}, []any{"true", 0.0}},
			{"null", []any{nil}, []any{"null", 0.0}},
			{`"a" | 'b\x63' | 3`, []any{"a", "bc", 3.0}, []any{"b", 4.0, nil}},
			{"Color", []any{0.0, "g"}, []any{1.0, "Red"}},
			{"/* a */ Color /* | string */ . Green", []any{"g"}, []any{0.0, "Green"}},
			{"Json", []any{"x", []any{[]any{}}, map[string]any{"a": "x"}}, []any{1.0, []any{1.0}, map[string]any{"a": []any{false}}}},
		}
		if depth == 0 {
			return rapid.SampledFrom(plain).Draw(t, "plain")
		}
		inner := types(depth - 1)
		a, b := inner.Draw(t, "a"), inner.Draw(t, "b")
		one := func(list []any) any { return rapid.SampledFrom(list).Draw(t, "value") }
		pair := map[string]any{"x": one(a.good), "y-z": one(b.good)}
		with := func(key string, value any) map[string]any {
			m := maps.Clone(pair)
			m[key] = value
			return m
		}
		without := map[string]any{"x": pair["x"]}
		return rapid.SampledFrom(append(plain,
			written{"(" + a.text + ")[]", []any{[]any{}, []any{one(a.good), one(a.good)}}, []any{map[string]any{}, []any{one(a.good), one(a.bad)}, "x"}},
			written{"Array<" + a.text + ">", []any{[]any{one(a.good)}}, []any{[]any{one(a.bad)}}},
			written{"[" + a.text + ", (" + b.text + ")?]", []any{[]any{one(a.good)}, []any{one(a.good), one(b.good)}}, []any{[]any{}, []any{one(a.good), one(b.bad)}, []any{one(a.good), one(b.good), 1.0}}},
			written{"Record<string, " + a.text + ">", []any{map[string]any{}, map[string]any{"any": one(a.good)}}, []any{[]any{}, map[string]any{"any": one(a.bad)}}},
			written{"{ x: " + a.text + "\n'y-z'?: " + b.text + " }", []any{pair, without}, []any{map[string]any{}, with("x", one(a.bad)), with("y-z", one(b.bad)), with("w", 1.0)}},
			written{"{ readonly x: " + a.text + "; } & { 'y-z': " + b.text + "; }", []any{pair}, []any{without, with("x", one(a.bad)), with("w", 1.0)}},
			written{"Partial<{ x: " + a.text + ", 'y-z': " + b.text + " }>", []any{map[string]any{}, pair}, []any{with("x", one(a.bad))}},
			written{"Omit<{ /** is kept; // ] */ x: " + a.text + ", 'y-z': " + b.text + " }, 'y-z'>", []any{without}, []any{pair, map[string]any{}}},
			written{
				"{ k: 'l'; x: " + a.text + " } | { k: 'r'; 'y-z': " + b.text + " }",
				[]any{map[string]any{"k": "l", "x": one(a.good)}, map[string]any{"k": "r", "y-z": one(b.good)}},
				[]any{map[string]any{"k": "l", "x": one(a.bad)}, map[string]any{"k": "r"}, map[string]any{"k": "o"}},
			},
		)).Draw(t, "type")
	})
}

// For any type, the tool accepts its values, passes them to the function unchanged, and refuses other values.
func TestDerivedSchemasAccept(t *testing.T) {
	chain := newToolchain(t)
	lists := rapid.SliceOfN(types(2), 20, 20)
	for seed := range 8 {
		list := lists.Example(seed)
		c := deriveAndBuild(t, chain, fstest.MapFS{"a.ts": {Data: []byte(functions(list))}}, "a.ts")
		for i, w := range list {
			for _, good := range w.good {
				out, err := c.Call(t.Context(), fmt.Sprintf("f%d", i), argument(t, i, good), nil)
				var got any
				if err == nil {
					err = json.Unmarshal(out, &got)
				}
				if err != nil || !reflect.DeepEqual(got, []any{good}) {
					t.Errorf("%s: %v gives %s, %v", w.text, good, out, err)
				}
			}
			for _, bad := range w.bad {
				out, err := c.Call(t.Context(), fmt.Sprintf("f%d", i), argument(t, i, bad), nil)
				if _, ok := errors.AsType[*host.InputError](err); !ok {
					t.Errorf("%s: %v gives %s, %v", w.text, bad, out, err)
				}
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// functions are functions f0, f1, ... that return a value of a type, written in several ways.
func functions(list []written) string {
	text := "enum Color { Red, Green = \"g\" }\ntype Json =\n  | string\n  | Json[]\n  | { [name: string]: Json };\n"
	for i, w := range list {
		switch i % 4 {
		case 0:
			text += fmt.Sprintf("export function f%d(v: %s) { return [v]; }\n", i, w.text)
		case 1:
			text += fmt.Sprintf("export const f%d = async (v?: %s, env?): Promise<any> => v === undefined ? [] : [v]\n", i, w.text)
		case 2:
			text += fmt.Sprintf("type T%d = %s\n// export default\nasync function f%d(...v: T%d[]) { return v }\nexport { f%d }\n", i, w.text, i, i, i)
		default:
			text += fmt.Sprintf("export const f%d = function ({ v }: { v: %s }) { const re = /'[`]/; return [v]; };\n", i, w.text)
		}
	}
	return text
}

// argument is the input of the i-th function, with this value.
func argument(t *testing.T, i int, value any) []byte {
	if i%4 == 2 {
		value = []any{value}
	}
	text, err := json.Marshal(map[string]any{"v": value})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A build also refuses whatever Check refuses, and Check refuses nothing that a build accepts.
func TestCheckAgreesWithBuild(t *testing.T) {
	chain := newToolchain(t)
	const start = `import { extension } from "stile"; `
	const tool = `{ description: "d", run: (x) => x }`
	for _, tt := range []struct {
		text  string
		right bool
	}{
		{start + `export default extension({ tools: { a: ` + tool + `, "b": ` + tool + `, async c() {}, ...{} } })`, false}, // for c, which no token tells
		{start + `export default extension({ tools: { a: ` + tool + `, "b": ` + tool + ` } })`, true},
		{`import { extension as e } from "stile"; const x = e({ tools: { a: ` + tool + ` } }); export { x as default }`, true},
		{`const { extension } = require("stile"); module.exports = extension({ tools: { a: ` + tool + ` } })`, true},
		{start + `const y = { z: extension({ tools: { a: ` + tool + ` } }) }; export default { ...y }.z`, true},
		{start + `export default extension({ tools: { createPr: ` + tool + ` } })`, false},
		{start + "export default extension({ tools: { h\u0430: " + tool + ` } })`, false},
		{start + `export default extension({ tools: {} })`, false},
		{`export default { tools: { a: ` + tool + ` } }`, false},
		{`export default function a() {}`, false},
		{`export default class {}`, false},
		{`export default "export default"`, false},
		{start + `export default extension({ tools: { a: ` + tool + " } });\nexport default 1", false},
		{`const a = 1`, false},
		{`// export default extension({})`, false},
		{`x(` + strings.Repeat("(", 16_000) + strings.Repeat(")", 16_000) + `)`, false},
	} {
		files := fstest.MapFS{"a.ts": {Data: []byte(tt.text)}}
		c, err := chain.Build(t.Context(), toolchain.Source{FS: files, Entry: "a.ts"})
		if err == nil {
			_ = c.Close()
		}
		_, problems := inspect.Check(files, "a.ts", nil)
		if (err == nil) != tt.right || tt.right && problems != nil || !tt.right && problems == nil && !strings.Contains(tt.text, "...{}") {
			t.Errorf("%.300s\nbuild: %.300v\ncheck: %.300v", tt.text, err, problems)
		}
	}
}
