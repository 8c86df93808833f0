package inspect

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/extension"
)

// files makes a source tree from names and contents in turn.
func tree(files ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for i := 0; i < len(files); i += 2 {
		m[files[i]] = &fstest.MapFile{Data: []byte(files[i+1])}
	}
	return m
}

func closed(properties string, required string) string {
	if required != "" {
		required = `,"required":[` + required + `]`
	}
	return `{"type":"object","properties":{` + properties + `}` + required + `,"additionalProperties":false}`
}

func TestDerive(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{
			"the plain one", `export function haversine(lat1: number, lon1: number): number { return lat1 - lon1 }`,
			`haversine | haversine(lat1, lon1) | ` + closed(`"lat1":{"type":"number"},"lon1":{"type":"number"}`, `"lat1","lon1"`) + ` | {"type":"number"} | input.lat1, input.lon1`,
		},
		{
			"doc comments", "/**\n * Adds a note,\n * and keeps it.\n *\n * @param title - what it is\n *   called\n * @param {string} [text=\"\"] its text\n * @returns the number\n * @example x\n */\nexport async function addNote(title: string, text = \"\"): Promise<number> { return 1 }",
			"add_note | Adds a note,\nand keeps it. | " + closed(`"title":{"description":"what it is\ncalled","type":"string"},"text":{"description":"its text","type":"string","default":""}`, `"title"`) + ` | {"description":"the number","type":"number"} | input.title, input.text`,
		},
		{
			"arrows", "export const f = (a: boolean): { a: boolean } => ({ a })\nexport const g = async function (b?: 'x' | 'y' | 1 | null) {}",
			`f | f(a) | ` + closed(`"a":{"type":"boolean"}`, `"a"`) + ` | {"type":"object","properties":{"a":{"type":"boolean"}},"required":["a"]} | input.a
g | g(b) | ` + closed(`"b":{"anyOf":[{"type":["string","number"],"enum":["x","y",1]},{"type":"null"}]}`, ``) + ` |  | input.b`,
		},
		{
			"nothing", `export function ping() {}`, `ping | ping() | ` + closed(``, ``) + ` |  | `,
		},
		{
			"literals", `export function f(a: "x\n\u0041" | -1 | 0x10 | 1e3, b: true, c: boolean | string | null, d: false | undefined) {}`,
			`f | f(a, b, c, d) | ` + closed(`"a":{"type":["string","number"],"enum":["x\nA",-1,16,1000]},"b":{"type":"boolean","enum":[true]},"c":{"type":["boolean","string","null"]},"d":{"type":"boolean","enum":[false]}`, `"a","b","c"`) + ` |  | input.a, input.b, input.c, input.d`,
		},
		{
			"lists", `export function f(a: string[][], b: readonly (number | null)[], c: Array<boolean>, d: [x: string, y?: number, ...rest: boolean[]], e: []) {}`,
			`f | f(a, b, c, d, e) | ` + closed(`"a":{"type":"array","items":{"type":"array","items":{"type":"string"}}},"b":{"type":"array","items":{"type":["number","null"]}},"c":{"type":"array","items":{"type":"boolean"}},"d":{"type":"array","prefixItems":[{"type":"string"},{"type":"number"}],"items":{"type":"boolean"},"minItems":1},"e":{"type":"array","items":false}`, `"a","b","c","d","e"`) + ` |  | input.a, input.b, input.c, input.d, input.e`,
		},
		{
			"objects", "interface P extends Q { readonly a: string; /** the b */\n 'b-b'?: number\n c: string | undefined }\ninterface Q { a: number, q: Color }\nenum Color { Red, Green = 'g', Blue = 5, White }\nexport function f(p: P, r: Record<string, number>, k: Record<'x' | 'y', null>, i: { a: string } & { b: Color.Blue }) {}",
			`f | f(p, r, k, i) | ` + closed(`"p":`+closed(`"q":{"type":["number","string"],"enum":[0,"g",5,6]},"a":{"type":"string"},"b-b":{"type":"number"},"c":{"type":"string"}`, `"q","a"`)+
				`,"r":{"type":"object","additionalProperties":{"type":"number"}},"k":`+closed(`"x":{"type":"null"},"y":{"type":"null"}`, `"x","y"`)+`,"i":`+closed(`"a":{"type":"string"},"b":{"type":"number","enum":[5]}`, `"a","b"`), `"p","r","k","i"`) + ` |  | input.p, input.r, input.k, input.i`,
		},
		{
			"mapped", "type T = { a: string; b?: number; c: boolean }\nexport function f(x: Partial<T>, y: Pick<T, 'a' | 'b'>, z: Omit<Readonly<T>, 'a'>) {}",
			`f | f(x, y, z) | ` + closed(`"x":`+closed(`"a":{"type":"string"},"b":{"type":"number"},"c":{"type":"boolean"}`, ``)+`,"y":`+closed(`"a":{"type":"string"},"b":{"type":"number"}`, `"a"`)+`,"z":`+closed(`"b":{"type":"number"},"c":{"type":"boolean"}`, `"c"`), `"x","y","z"`) + ` |  | input.x, input.y, input.z`,
		},
		{
			"types that hold themselves", "type Json = string | Json[] | { [k: string]: Json }\nexport function f(a: Json): Tree { return a as any }\ninterface Tree { left?: Tree; value: number }",
			`f | f(a) | {"type":"object","properties":{"a":{"$ref":"#/$defs/Json"}},"required":["a"],"additionalProperties":false,"$defs":{"Json":{"anyOf":[{"type":"string"},{"type":"array","items":{"$ref":"#/$defs/Json"}},{"type":"object","additionalProperties":{"$ref":"#/$defs/Json"}}]}}} | {"$ref":"#/$defs/Tree","$defs":{"Tree":{"type":"object","properties":{"left":{"$ref":"#/$defs/Tree"},"value":{"type":"number"}},"required":["value"]}}} | input.a`,
		},
		{
			"one pattern", `export function f({ a, b = 2 }: { a: string; b?: number }, env: Env) {}`,
			`f | f() | ` + closed(`"a":{"type":"string"},"b":{"type":"number"}`, `"a"`) + ` |  | input, env`,
		},
		{
			"env", `import { type Env } from "stile"; export function f(a: string, env) {} export const g = (e: Env) => 1; export function h(env: { kv: { get(k: string): Promise<string> } }) {}`,
			`f | f(a) | ` + closed(`"a":{"type":"string"}`, `"a"`) + " |  | input.a, env\ng | g() | " + closed(``, ``) + " |  | env\nh | h() | " + closed(``, ``) + ` |  | env`,
		},
		{
			"rest", `export function f(a: number, ...names: string[]) {}`,
			`f | f(a, names) | ` + closed(`"a":{"type":"number"},"names":{"type":"array","items":{"type":"string"}}`, `"a"`) + ` |  | input.a, ...(input.names ?? [])`,
		},
		{
			"defaults", `export function f(a = 1, b = -2.5, c = true, d: string[] = [], e = "x") {}`,
			`f | f(a, b, c, d, e) | ` + closed(`"a":{"type":"number","default":1},"b":{"type":"number","default":-2.5},"c":{"type":"boolean","default":true},"d":{"type":"array","items":{"type":"string"}},"e":{"type":"string","default":"x"}`, ``) + ` |  | input.a, input.b, input.c, input.d, input.e`,
		},
		{
			"exported later", "/** One. */\nasync function one(a: string) {}\n/** Two. */\nconst two = (b: number) => b\ninterface T {}\nexport { one, two as other, type T }",
			`one | One. | ` + closed(`"a":{"type":"string"}`, `"a"`) + " |  | input.a\nother | Two. | " + closed(`"b":{"type":"number"}`, `"b"`) + ` |  | input.b`,
		},
		{
			"constants and classes", "export type A = string\nexport const day = 24 * 3600\nexport const list = [1, 2] as const;\nexport class C {}\nexport const m = new Map<string, number>()\nexport const none = null\nexport function f(a: A) {}",
			`f | f(a) | ` + closed(`"a":{"type":"string"}`, `"a"`) + ` |  | input.a`,
		},
		{
			"what is no code", "const s = 'export default 1' // export default\n/* export function x() {} */\nexport function f(a: string) { return `export function y() {}` }",
			`f | f(a) | ` + closed(`"a":{"type":"string"}`, `"a"`) + ` |  | input.a`,
		},
		{
			"bodies", "@x class Y { @a b = <any>c; d() { return /}/ } }\nexport function f(a: string): void { const x = a as unknown as Map<string, { b: 1 }>; if (a) /'/.test(a); return `${`${a}`}` }",
			`f | f(a) | ` + closed(`"a":{"type":"string"}`, `"a"`) + ` |  | input.a`,
		},
		{
			"results that are left out", "export function a(): Promise<Response> {} export function b(): Map<string, number> {} export function c(x: number): x is 1 {} export function d(): string | undefined {} export function e(): asserts x {}",
			"a | a() | " + closed(``, ``) + " |  | \nb | b() | " + closed(``, ``) + " |  | \nc | c(x) | " + closed(`"x":{"type":"number"}`, `"x"`) + " |  | input.x\nd | d() | " + closed(``, ``) + " |  | \ne | e() | " + closed(``, ``) + " |  | ",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, err := Derive(tree("tool.ts", tt.text), "tool.ts")
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, tool := range d.Tools {
				output := ""
				if tool.OutputSchema != nil {
					output = *tool.OutputSchema
				}
				_, after, _ := strings.Cut(string(d.Text), ") => call_"+tool.Name+"(")
				arguments, _, _ := strings.Cut(after, "),\n")
				got = append(got, strings.Join([]string{tool.Name, tool.Description, tool.InputSchema, output, arguments}, " | "))
			}
			if strings.Join(got, "\n") != tt.want {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), tt.want)
			}
		})
	}
}

// The complete text of one generated module.
func TestDerivedText(t *testing.T) {
	d, err := Derive(tree("src/a \"b\".mts", "/** Says `hi` to \"you\". */\nexport function sayHi(name: string): string { return name }"), "src/a \"b\".mts")
	if err != nil {
		t.Fatal(err)
	}
	want := `// Made for "src/a \"b\".mts": the functions that it exports, as tools.
import { extension } from "stile";
import { sayHi as call_say_hi, } from "./a \"b\".mts";

export default extension({
  tools: {
    say_hi: {
      description: "Says ` + "`hi`" + ` to \"you\".",
      input: {"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false},
      output: {"type":"string"},
      run: (input: any, env: any) => call_say_hi(input.name),
    },
  },
});
`
	if d.Entry != "src/a \"b\".tools.ts" || string(d.Text) != want {
		t.Errorf("%s: %s", d.Entry, d.Text)
	}
}

// A module with a default export needs no derivation, however the export is written.
func TestDeriveDefault(t *testing.T) {
	for _, text := range []string{
		"export default 1", "export { a as default }", "export { a as 'default' }", "export * as default from './x'", "export default function f(a: any) {}\nexport function g(a) {}",
		"x = {} / 1; export default 1",
		"module.exports = require('stile').extension({})", "(function () { exports.default = 1 })()",
		"export default 1 //" + strings.Repeat(" ", extension.MaxSource-100),
	} {
		if d, err := Derive(tree("a.ts", text), "a.ts"); d != nil || err != nil {
			t.Errorf("%s: %v, %v", text, d, err)
		}
	}
}

// Types of other files are found if the file and the type are unambiguous.
func TestDeriveImports(t *testing.T) {
	const entry = "import { type A as B, C } from './lib/types.js'\nimport type { D } from './d'\nimport x, { y } from 'zod'\nimport './effect'\nimport type Z from './z'\nexport function f(b: B, c: C, d: D) {}"
	good := tree("a.ts", entry, "lib/types.ts", "import { Inner } from '../d.ts'\nexport type A = { i: Inner }\ntype E = number; export { type E as C }", "d.d.ts", "", "d.ts", "export interface D { x: string }\nexport type Inner = 'in'")
	delete(good, "d.d.ts")
	d, err := Derive(good, "a.ts")
	want := closed(`"b":`+closed(`"i":{"type":"string","enum":["in"]}`, `"i"`)+`,"c":{"type":"number"},"d":`+closed(`"x":{"type":"string"}`, `"x"`), `"b","c","d"`)
	if err != nil || d.Tools[0].InputSchema != want {
		t.Fatalf("%v\n%s\nwant\n%s", err, d.Tools[0].InputSchema, want)
	}
	for _, tt := range []struct{ entry, name, text, want string }{
		{"import { A } from './b'\nexport function f(a: A) {}", "c.ts", "", `a.ts:1:10: "./b" is not a file of the extension`},
		{"import { A } from './b'\nexport function f(a: A) {}", "b.js", "export const A = 1", `a.ts:1:10: "b.js" is not TypeScript`},
		{"import { A } from './b.js'\nexport function f(a: A) {}", "b.tsx", "export type B = 1", `a.ts:1:10: "b.tsx" declares and exports no type "A"`},
		{"import { A } from './b'\nexport function f(a: A) {}", "b.ts", "type A = 1", `a.ts:1:10: "b.ts" declares and exports no type "A"`},
		{"import { A } from './b'\nexport function f(a: A) {}", "b.ts", "export { A } from './c'", `a.ts:1:10: "b.ts" declares and exports no type "A"`},
		{"import { A } from './b'\nexport function f(a: A) {}", "b.ts", "export type A = 1; x = {} /1/ 2", `b.ts:1:27: from here on`},
		{"import { A } from './b'\nexport function f(a: A) {}", "b.ts", "export type A = B", `b.ts:1:17: "B" is not declared`},
		{"import { A } from './b'\nexport function f(a: A) {}", "b.ts", "export type A = 1; declare module './b' { }", `b.ts:1:20: from here on`},
		{"import { A } from '../b'\nexport function f(a: A) {}", "b.ts", "export type A = 1", `a.ts:1:10: "../b" is not a file of the extension`},
		{"import { A } from 'b'\nexport function f(a: A) {}", "b.ts", "export type A = 1", `a.ts:1:10: the types of the package "b" are not read`},
		{"import A from './b'\nexport function f(a: A) {}", "b.ts", "export default interface A {}", `a.ts:1:8: a type that is not imported by its name`},
		{"import * as A from './b'\nexport function f(a: A.B) {}", "b.ts", "export type B = 1", `a.ts:1:13: a type that is not imported by its name`},
	} {
		refuses(t, tree("a.ts", tt.entry, tt.name, tt.text), "a.ts", tt.want)
	}
	refuses(t, tree("a.ts", "import { A } from './b'\nexport function f(a: A) {}", "b.ts", "export type A = 1", "b/index.ts", "export type A = 2"), "a.ts", `a.ts:1:10: "./b" could be any of 2 files`)
}

// refuses checks the first problem of a derivation.
func refuses(t *testing.T, fsys fstest.MapFS, entry, want string) {
	t.Helper()
	d, err := Derive(fsys, entry)
	failed, ok := errors.AsType[*extension.ProblemsError](err)
	if !ok || failed.Stage != extension.StageValidate {
		t.Errorf("got %+v, %v\nwant %s", d, err, want)
		return
	}
	p := failed.Problems[0]
	if !strings.HasPrefix(p.String(), want) || p.Fix == "" || p.Line > 0 && p.Snippet == "" {
		t.Errorf("got %s\nwant %s", p, want)
	}
}

func TestDeriveRefuses(t *testing.T) {
	bomb := "type A0 = { a: string }\n"
	for i := range 40 {
		bomb += fmt.Sprintf("type A%d = { a: A%d; b: A%d }\n", i+1, i, i)
	}
	chain := "type A0 = string\n"
	for i := range 1000 {
		chain += fmt.Sprintf("type A%d = A%d\n", i+1, i)
	}
	many := strings.Builder{}
	for i := range 300 {
		fmt.Fprintf(&many, "export function f%d() {}\n", i)
	}
	for _, tt := range []struct{ text, want string }{
		{"", "a.ts:1:1: the file has no default export, and exports no function"},
		{"const x = 'export function f() {}'", "a.ts:1:35: the file has no default export"},
		{"export function f(a: string, toString?: string) {}", `a.ts:1:30: "toString" exists on every object, so it would never be absent; write another name`},
		{"export function f(a: any) {}", `a.ts:1:22: "any" does not say which JSON is accepted; write the type of the values`},
		{"export function f(a: unknown) {}", `a.ts:1:22: "unknown" does not say`},
		{"export function f(a: { b: Date }) {}", `a.ts:1:27: "Date" does not say which JSON is accepted; write string, and new Date(value) in the function`},
		{"export function f(a: Map<string, string>) {}", `a.ts:1:22: "Map" does not say which JSON is accepted; write Record<string, Type>`},
		{"export function f(a: bigint) {}", `a.ts:1:22: "bigint" does not`},
		{"export function f(a: 1n) {}", `a.ts:1:22: a number that JSON does not have`},
		{"export function f(a: 010) {}", `a.ts:1:22: a number that JSON does not have`},
		{"export function f(a) {}", `a.ts:1:19: "a" has no type; write a: Type`},
		{"export const f = a => a", `a.ts:1:18: "a" has no type`},
		{"export const f = async (a) => a", `a.ts:1:25: "a" has no type`},
		{"export function f(a = []) {}", `a.ts:1:19: "a" has no type`},
		{"export function f(a = new Map<b, c>()) {}", `a.ts:1:30: a default with a <`},
		{"export function f<T>(a: T) {}", `a.ts:1:18: a tool has no type parameters`},
		{"export const f = <T>(x: T) => x", `a.ts:1:18: a tool has no type parameters`},
		{"export function f(a: string): void\nexport function f(a: number): void\nexport function f(a: any) {}", `a.ts:2:8: "f" is declared more than once`},
		{"export function f(a: string): void;", `a.ts:1:35: this cannot be read as TypeScript that schemas are made of; write "{" here`},
		{"export function* f() {}", `a.ts:1:16: "f" is a generator`},
		{"export function f({ a }: { a: string }, b: string) {}", `a.ts:1:19: a pattern has no name`},
		{"export function f([a]: string[]) {}", `a.ts:1:24: the input of a tool is an object`},
		{"export function f({ a }) {}", `a.ts:1:19: a pattern has no name`},
		{"export function f({ a }: A) {}\ninterface A { a: A[] }", `a.ts:1:26: an input that holds itself`},
		{"export function f(...a: [string]) {}", `a.ts:1:25: this is not a list of any length`},
		{"export function f(...a: string) {}", `a.ts:1:25: this is not a list of any length`},
		{"export function f(env: string) {}", `a.ts:1:19: "env" is the bindings of a call, and this has another type`},
		{"export function f(env: Env, a: string) {}", `a.ts:1:19: "env" is not the last parameter`},
		{"export function f(this: string) {}", `a.ts:1:19: this cannot be read as a parameter`},
		{"export function f(@x a: string) {}", `a.ts:1:19: this cannot be read as a parameter`},
		{"export function f(a: string, a: string) {}", `a.ts:1:30: two parameters are named "a"`},
		{"export function f(__proto__: string) {}", `a.ts:1:19: the parameter "__proto__" means something else in JavaScript`},
		{"export function f(a: { __proto__: string }) {}", `a.ts:1:24: the property "__proto__" means something else`},
		{"export function f(a: { b: string; b: number }) {}", `a.ts:1:35: the property "b" is here twice`},
		{"export function f(a: {}) {}", `a.ts:1:22: a type without properties accepts everything`},
		{"interface X {}\nexport function f(a: X) {}", `a.ts:1:13: a type without properties`},
		{"export function f(a: { b(): string }) {}", `a.ts:1:24: "b" is a method, and JSON has none`},
		{"export function f(a: { get b(): string }) {}", `a.ts:1:24: an accessor in a type`},
		{"export function f(a: { [k: number]: string }) {}", `a.ts:1:24: properties whose names are computed`},
		{"export function f(a: { [K in 'a']: string }) {}", `a.ts:1:24: properties whose names are computed`},
		{"export function f(a: () => void) {}", `a.ts:1:22: JSON has no values of this type: it is a function`},
		{"export function f(a: new () => Date) {}", `a.ts:1:22: JSON has no values of this type`},
		{"export function f(a: keyof X) {}", `a.ts:1:22: JSON has no values of this type: it is a type made with keyof`},
		{"export function f(a: typeof x) {}", `a.ts:1:22: JSON has no values of this type: it is a type that is taken from a value`},
		{"export function f(a: X['y']) {}", `a.ts:1:22: JSON has no values of this type: it is a type taken from another by index`},
		{"export function f(a: X extends Y ? 1 : 2) {}", `a.ts:1:22: JSON has no values of this type: it is a conditional type`},
		{"export function f(a: `x${string}`) {}", `a.ts:1:22: JSON has no values of this type`},
		{"export function f(a: import('x').Y) {}", `a.ts:1:22: a type that cannot be read here`},
		{"export function f(a: (string | undefined)[]) {}", `a.ts:1:23: JSON has no undefined here`},
		{"export function f(a: undefined) {}", `a.ts:1:22: "undefined" does not say which JSON`},
		{"export function f(a: Foo) {}", `a.ts:1:22: "Foo" is not declared in this file`},
		{"class Foo { a = 1 }\nexport function f(a: Foo) {}", `a.ts:2:22: "Foo" is a class`},
		{"class Foo {}\ninterface Foo { a: 1 }\nexport function f(a: Foo) {}", `a.ts:3:22: "Foo" is declared more than once`},
		{"interface Foo { a: 1 }\ninterface Foo { b: 1 }\nexport function f(a: Foo) {}", `a.ts:3:22: "Foo" is declared more than once`},
		{"type Foo<T> = T\nexport function f(a: Foo<string>) {}", `a.ts:2:22: "Foo" has type parameters`},
		{"type Record<T> = T\nexport function f(a: Record<string, string>) {}", `a.ts:2:22: "Record" has type parameters`},
		{"type Foo = string\nexport function f(a: Foo<string>) {}", `a.ts:2:22: "Foo" has type parameters`},
		{"export function f(a: string<number>) {}", `a.ts:1:22: "string" takes 0 type arguments`},
		{"export function f(a: Record<string>) {}", `a.ts:1:22: "Record" takes 2 type arguments`},
		{"export function f(a: Record<number, string>) {}", `a.ts:1:29: these are not names of properties`},
		{"export function f(a: Pick<{ a: 1 }, 'b'>) {}", `a.ts:1:22: there is no property "b"`},
		{"export function f(a: { a: 1 } & { a: 2 }) {}", `a.ts:1:33: the property "a" comes from two types`},
		{"export function f(a: { a: 1 } & string) {}", `a.ts:1:33: "string" is not the type of an object`},
		{"enum E { A = 1 << 2 }\nexport function f(a: E) {}", `a.ts:1:16: this cannot be read`},
		{"enum E { A = x() }\nexport function f(a: E) {}", `a.ts:1:10: the value of "A" is computed`},
		{"enum E { A = 'a', B }\nexport function f(a: E) {}", `a.ts:1:19: "B" has no value`},
		{"declare enum E { A }\nexport function f(a: E) {}", `a.ts:1:14: an enum that is declared`},
		{"enum E { A }\nexport function f(a: E.B) {}", `a.ts:2:22: the enum "E" has no "B"`},
		{"type A = A | string\nexport function f(a: A) {}", `a.ts:1:10: "A" refers directly to itself`},
		{"type A = B\ntype B = A\nexport function f(a: A) {}", `a.ts:2:10: "A" refers directly to itself`},
		{"type A = { a: A } | undefined\nexport function f(a: A) {}", `a.ts:2:22: a type that holds itself and may be undefined`},
		{"interface A extends A { a: 1 }\nexport function f(a: A) {}", `a.ts:1:23: types made of too many others`},
		{"interface A { a: Partial<A> }\nexport function f(a: A) {}", `a.ts:1:`},
		{"type A = string foo\nexport function f(a: A) {}", `a.ts:1:17: this cannot be read as a part of the type`},
		{bomb + "export function f(a: A40) {}", `a.ts:`},
		{chain + "export function f(a: A1000) {}", `a.ts:`},
		{"export function f(a: " + strings.Repeat("{ b: ", 40) + "string" + strings.Repeat(" }", 40) + ") {}", `a.ts:1:17: the schema of "f" is too large, or too deep`},
		{"export function f(a: " + strings.Repeat("(", 20_000) + "string" + strings.Repeat(")", 20_000) + ") {}", `a.ts:1:86: a type nested deeper than 64 levels`},
		{"export function f(a: " + strings.Repeat("string | ", 60_000) + "string) {}", `a.ts:1:9013: with this type the schema`},
		{"export function f(a: " + strings.Repeat("Array<", 20_000) + ") {}", `a.ts:1:`},
		{"export function f(a: " + strings.Repeat("readonly ", 50_000) + "string, b: " + strings.Repeat("keyof ", 50_000) + "a) {}", `a.ts:1:450033: JSON has no values of this type: it is a type made with keyof`},
		{strings.Repeat("export const a = (b: x) => y ", 30_000), `a.ts:1:22: "x" is not declared`},
		{"export function f(a: " + strings.Repeat("x.", 300_000) + "y) {}", `a.ts:1:22: "x.x.x`},
		{"export function f(" + strings.Repeat("a: string, ", 65) + ") {}", `a.ts:1:17: "f" has more than 64 parameters`},
		{many.String(), `a.ts:1:1: more than 256 functions are exported`},
		{"export function h\u0430versine(a: string) {}", `a.ts:1:17: "hаversine" cannot be the name of a tool, because of the character '\u0430'`},
		{"export function $x() {}", `a.ts:1:17: "$x" cannot be the name of a tool`},
		{"export function _x() {}", `a.ts:1:17: "_x" cannot be the name of a tool`},
		{"export function f\\u0061() {}", `a.ts:1:24: from here on`},
		{"export function aB() {}\nexport function a_b() {}", `a.ts:2:17: "aB" and "a_b" are both the tool "a_b"`},
		{"export function f(p\u0430: string) {}", `a.ts:1:19: the parameter "pа" has letters of several scripts`},
		{"/** Reads a file.\u202e */\nexport function f() {}", `a.ts:1:18: the comment has the invisible character '\u202e'`},
		{"/** Reads a file.\U000E0041 */\nexport function f() {}", `a.ts:1:18: the comment has the invisible character '\U000e0041'`},
		{"/** a\u200bb */\nexport function f() {}", `a.ts:1:6: the comment has the invisible character '\u200b'`},
		{"/** a\ufe0f\ufe0f */\nexport function f() {}", `a.ts:1:6: the comment has the invisible character '\ufe0f'`},
		{"/** a\x1b[2J */\nexport function f() {}", `a.ts:1:6: the comment has the invisible character '\x1b'`},
		{"export function f(a: {\n/** a\u202e */\nb: 1 }) {}", `a.ts:2:6: the comment has the invisible character '\u202e'`},
		{"export function f(a: 'x\\u202ey') {}", `a.ts:1:22: the string has the invisible character '\u202e'`},
		{"export function f(a: { 'x\u200b': 1 }) {}", `a.ts:1:24: the property "x\u200b" has the invisible character '\u200b'`},
		{"/**" + strings.Repeat("x", 5000) + "*/\nexport function f() {}", `a.ts:1:1: the comment has 5005 bytes`},
		{"export const f = wrap((a: number) => a)", `a.ts:1:18: it is unclear whether "f" is a function`},
		{"export const f = [1].map", `a.ts:1:18: it is unclear whether "f" is a function`},
		{"export const f: (a: number) => void = (a) => {}", `a.ts:1:15: the type of "f" is separate`},
		{"export const f = (a: number) => a, g = (b: number) => b", `a.ts:1:36: a second constant in one export`},
		{"export const { f } = x", `a.ts:1:14: it is unclear what this exports`},
		{"export let f = (a: number) => a", `a.ts:1:8: a variable that can change cannot be a tool`},
		{"export * from './x'", `a.ts:1:1: it is unclear from this file what this exports`},
		{"export { f } from './x'", `a.ts:1:10: it is unclear from this file what this exports`},
		{"import { f } from './x'\nexport { f }", `a.ts:2:10: it is unclear from this file what "f" is`},
		{"export = f", `a.ts:1:1: export = is not part of ES modules`},
		{"export declare function f(a: string): void", `a.ts:1:1: this is declared but not defined`},
		{"export import a = b.c", `a.ts:1:1: it is unclear what this exports`},
		{"x = {} / 1; '/'\nexport function f() {}", `a.ts:1:8: from here on this file can be read in more than one way`},
		{"export function f() { return '", `a.ts:1:31: from here on`},
		{"export function f(", `a.ts:1:19: the brackets do not match: "(" in line 1, which is closed by the end of the file in line 1; write ")" before it`},
		{"export function f(a: string) {\n  return a.toUppercase( }\n", `a.ts:2:25: the brackets do not match: "(" in line 2, which is closed by "}" in line 2; write ")" before it`},
		{"export function f() { return [\n1, 2)\n}", `a.ts:2:5: the brackets do not match: "[" in line 1, which is closed by ")" in line 2; write "]" before it`},
		{"export function f() {\n return `${a)}` }", "a.ts:2:13: the brackets do not match: \"${\" in line 2, which is closed by \")\" in line 2; write \"}\" before it"},
		{"export function f() {}\n}", `a.ts:2:1: the brackets do not match: "}" in line 2, which closes nothing; write it without this one`},
	} {
		refuses(t, tree("a.ts", tt.text), "a.ts", tt.want)
	}
	refuses(t, tree("a.tsx", "export function f() { return <a>it's</a> }"), "a.tsx", "a.tsx:1:30: from here on this file can be read in more than one way, because of JSX")
	refuses(t, tree("a.js", "export function f(a) {}"), "a.js", `a.js:1:19: "a" has no type; write a: Type, in a file whose name ends in .ts`)
	refuses(t, tree("a.mjs", "export const f = a => a"), "a.mjs", `a.mjs:1:18: "a" has no type; write a: Type, in parentheses, in a file whose name ends in .ts`)
	refuses(t, tree("b.ts", ""), "a.ts", "a.ts: there is no such file")
	refuses(t, tree("b.ts", ""), "../b.ts", "../b.ts: there is no such file")
	refuses(t, tree("a.ts", strings.Repeat(" ", extension.MaxSource+1)), "a.ts", "a.ts: the file has more than 16 MiB")
	refuses(t, tree("a.ts", "export function f() {}", "a.tools.ts", ""), "a.ts", "a.tools.ts: this is the name of the module that is made")
	refuses(t, tree("a\n\u202eb.ts", "export function f(a) {}"), "a\n\u202eb.ts", `a \u202eb.ts:1:19: "a" has no type`)
}

func TestToolName(t *testing.T) {
	for name, want := range map[string]string{
		"haversine": "haversine", "createPR": "create_pr", "parseURLPath": "parse_url_path", "toJSON": "to_json", "add_note": "add_note", "Get2Things": "get2_things", "x1": "x1",
	} {
		if got := toolName(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// Emoji and scripts that need joiners may be in comments. Invisible characters between other letters may not.
func TestUnseen(t *testing.T) {
	for text, want := range map[string]bool{
		"⚠\ufe0f careful": false, "👩\u200d❤\ufe0f\u200d👨": false, "می\u200cخواهم": false, "naïve\r\n\t": false, "日本": false,
		"a\u200db": true, "\u2066": true, "\u00ad": true, "\u3164": true, "\u2800": true, "a\rb": true, "\xff": true, "\U000E0100": true, "👩\u200d\u200d": true,
	} {
		if _, _, found := unseen(text); found != want {
			t.Errorf("%+q: %v", text, found)
		}
	}
}

func FuzzDerive(f *testing.F) {
	for _, text := range hostile {
		f.Add(text, text)
		f.Add("import { A } from './b'\nexport function f(a: A) {}", text)
		f.Add("export function f(a: "+text+") {}", "")
	}
	f.Fuzz(func(t *testing.T, text, other string) {
		d, err := Derive(tree("a.ts", text, "b.ts", other), "a.ts")
		if failed, ok := errors.AsType[*extension.ProblemsError](err); ok {
			for _, p := range failed.Problems {
				if file := map[string]string{"a.ts": text, "b.ts": other}[p.File]; p.Line > 0 {
					inside(t, file, Place{p.File, p.Line, p.Column})
				}
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if d == nil {
			return
		}
		for _, tool := range d.Tools {
			if !json.Valid([]byte(tool.InputSchema)) || !extension.IsToolName(tool.Name) || tool.Description == "" {
				t.Errorf("%+v", tool)
			}
		}
	})
}

// A function that is declared several times is reported once.
func TestDeriveOverloads(t *testing.T) {
	_, err := Derive(tree("a.ts", "export function f(a: string): void\nexport function f(a: number): void\nexport function f(a: any) {}"), "a.ts")
	bad, ok := errors.AsType[*extension.ProblemsError](err)
	if !ok || len(bad.Problems) != 1 || !strings.Contains(bad.Error(), "declared more than once") {
		t.Errorf("got %v", err)
	}
}

// For a file in which everything is wrong, only the reported problems are stored.
func TestProblemsAreBounded(t *testing.T) {
	for _, text := range []string{"export {" + strings.Repeat("a,", 1<<12) + "}", strings.Repeat("export ", 1<<12)} {
		m, err := newFiles(tree("a.ts", text)).read("a.ts", extension.MaxSource)
		if err != nil || len(m.refused) == 0 || len(m.refused) > abi.MaxProblems {
			t.Errorf("%.20s: got %d problems, %v", text, len(m.refused), err)
		}
	}
}
