package typecheck

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stilehost/stile/extension"
)

// typedPackages bring types in all the ways that there are.
var typedPackages = map[string]string{
	"own/package.json":  `{"name": "own", "types": "./lib/own.d.ts", "main": "own.js"}`,
	"own/lib/own.d.ts":  `import { Part } from "./part.js"; export declare class Thing { constructor(name: string); title: string; rename(to: string): Part; maybe(): Part | null; } export declare function make<T>(of: T, count: number): Thing; export declare const options: (o: { indent?: number }) => unknown; declare const all: { make: typeof make }; export default all;`,
	"own/lib/part.d.ts": `export interface Part { size: number; kind: "a" | "b"; }`,

	"main/package.json":   `{"name": "main", "main": "./dist/main"}`,
	"main/dist/main.d.ts": `declare function main(a: number): main.Result; declare namespace main { interface Result { value: string } } export = main;`,

	"exported/package.json":    `{"exports": {".": {"worker": {"types": "./w.d.ts"}, "import": {"types": "./e.d.mts", "default": "./e.mjs"}, "require": {"types": "./e.d.cts"}}, "./sub/*": {"default": "./sub/*.js"}, "./private/*": null, "./only": {"require": "./only.cjs"}}}`,
	"exported/e.d.mts":         `export const n: number; export * from "./more.mjs";`,
	"exported/e.d.cts":         `export const wrong: number;`,
	"exported/more.d.mts":      `export const more: string;`,
	"exported/sub/deep/a.d.ts": `export const s: string;`,
	"exported/private/p.d.ts":  `export const p: string;`,
	"exported/only.d.cts":      `export const only: string;`,

	"versions/package.json":    `{"typesVersions": {"<4.0": {"*": ["old/*"]}, ">=4.0": {"*": ["new/*"]}}, "types": "index.d.ts"}`,
	"versions/index.d.ts":      `export const v: number;`,
	"versions/new/part.d.ts":   `export const part: number;`,
	"versions/old/part.d.ts":   `export const part: string;`,
	"bare/package.json":        `{}`,
	"bare/index.d.ts":          `export const b: number;`,
	"bare/folder/package.json": `{"typings": "./t.d.ts"}`,
	"bare/folder/t.d.ts":       `export const t: number;`,

	"plain/package.json":        `{"main": "index.js"}`,
	"@types/plain/package.json": `{}`,
	"@types/plain/index.d.ts":   "/// <reference path=\"./global.d.ts\" />\n/// <reference lib=\"dom\" />\n/// <reference types=\"node\" />\nexport function f(a: PlainGlobal): number;",
	"@types/plain/global.d.ts":  `interface PlainGlobal { a: string }`,

	"@s/scoped/package.json":                `{}`,
	"@types/s__scoped/package.json":         `{}`,
	"@types/s__scoped/index.d.ts":           `export const scoped: number;`,
	"outer/package.json":                    `{"types": "o.d.ts"}`,
	"outer/o.d.ts":                          `export { b } from "inner"; export { b as c } from "bare";`,
	"outer/node_modules/inner/package.json": `{"types": "i.d.ts"}`,
	"outer/node_modules/inner/i.d.ts":       `export const b: string;`,

	"node/package.json":   `{"types": "n.d.ts"}`,
	"node/n.d.ts":         `import { EventEmitter } from "node:events"; import type { Readable } from "stream"; export interface Emitter extends EventEmitter { size: number } export interface Out extends NodeJS.WritableStream {} export class Source extends Readable { here: number } export declare function open(): Emitter; export declare function out(): Out; export declare function source(): Source;`,
	"half/package.json":   `{"types": "h.d.ts"}`,
	"half/h.d.ts":         `import { Base } from "base"; export class Part extends Base { here: number }`,
	"base/package.json":   `{"types": "b.d.ts"}`,
	"base/b.d.ts":         `export class Base {}`,
	"all/package.json":    `{"types": "a.d.ts"}`,
	"all/a.d.ts":          `export * from "node:net"; export const here: number;`,
	"dom/package.json":    `{"types": "d.d.ts"}`,
	"dom/d.d.ts":          `export declare function render(to: HTMLElement, how?: Intl.NumberFormatOptions): Document; export declare function bytes(): Buffer;`,
	"intl/package.json":   `{"types": "i.d.ts"}`,
	"intl/i.d.ts":         `export * from "./format.js"; export declare function days(n: number): number;`,
	"intl/format.d.ts":    `export interface Options extends Intl.RelativeTimeFormatOptions { unit?: string } export declare function format(options: Options): string;`,
	"broken/package.json": `{"types": "b.d.ts"}`,
	"broken/b.d.ts":       `export const b: number; export {{{ interface`,

	"leads/package.json":  `{"types": "../../etc/passwd", "main": "../own/lib/own"}`,
	"leads/index.d.ts":    `import { Part } from "../own/lib/part.js"; export const part: Part; export const x: number;`,
	"bad/package.json":    `{"types": 5, "exports": [{"types": ["./b.d.ts"]}, null]}`,
	"bad/b.d.ts":          `export const b: number;`,
	"noJSON/package.json": `{"types": `,
}

func treeOf(files map[string]string) fs.FS {
	tree := fstest.MapFS{}
	for name, text := range files {
		tree["node_modules/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	return tree
}

// checked returns the problems of code that uses packages, and the warnings.
func checked(t *testing.T, c *Checker, packages fs.FS, code string) (text string, warnings []string) {
	t.Helper()
	source := `import { extension } from "stile";` + "\n" + code + "\n" + `export default extension({ tools: { get: { description: "Gets", run: async (input) => 1 } } });`
	err := c.Check(t.Context(), Request{
		Files: map[string][]byte{"tool.ts": []byte(source)}, Entry: "tool.ts", Bindings: bindings, Packages: packages, Dependencies: map[string]string{"@types/plain": "*", "@types/s__scoped": "*"},
		Warn: func(text string) { warnings = append(warnings, text) },
	})
	if found, ok := errors.AsType[*extension.ProblemsError](err); ok {
		for _, p := range found.Problems {
			text += fmt.Sprintf("%s:%d: %s; ", p.File, p.Line, strings.ReplaceAll(p.Text, "\n", " "))
		}
	} else if err != nil {
		t.Errorf("%s: %v", code, err)
	}
	return text, warnings
}

func TestWithoutComments(t *testing.T) {
	for text, want := range map[string]string{
		"/** a */ export const a: number; // b\nexport const b: 1;": "  export const a: number;  \nexport const b: 1;",
		"export const a: \"/* no */\";/* x\ny */export {}":          "export const a: \"/* no */\";\nexport {}",
		"/// <reference path=\"./a.d.ts\" />\nexport {}":            "/// <reference path=\"./a.d.ts\" />\nexport {}",
		"":            "",
		"/* unclosed": "/* unclosed",
	} {
		if got := withoutComments(text); got != want && strings.TrimSpace(got) != strings.TrimSpace(want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestTypesOfPackages(t *testing.T) {
	c := newChecker(t, 0)
	packages := treeOf(typedPackages)
	for code, want := range map[string]string{
		// What is there.
		`import { Thing } from "own"; new Thing("a").titel;`:                               "tool.ts:2: Property 'titel' does not exist on type 'Thing'. Did you mean 'title'? (TS2551)",
		`import { Thing } from "own"; new Thing("a").remove();`:                            "Property 'remove' does not exist on type 'Thing'. (TS2339)",
		`import { Part } from "half"; new Part().on();`:                                    "",
		`import { Thing } from "own"; new Thing();`:                                        "Expected 1 arguments, but got 0. (TS2554)",
		`import { Thing } from "own"; new Thing(5);`:                                       "Argument of type 'number' is not assignable to parameter of type 'string'. (TS2345)",
		`import { Thing } from "own"; const n: number = new Thing("a").title;`:             "Type 'string' is not assignable to type 'number'. (TS2322)",
		`import { Thing } from "own"; const k: "c" = new Thing("a").rename("b").kind;`:     "",
		`import { options } from "own"; options({ indant: 2 });`:                           "'indant' does not exist in type",
		`import { things } from "own"; things();`:                                          `has no exported member`,
		`import all from "own"; all.make({}, 1).title.length; all.made({});`:               "Property 'made' does not exist",
		`import main from "main"; const n: number = main(1).value;`:                        "Type 'string' is not assignable to type 'number'",
		`import { n, more } from "exported"; const s: string = n; const x: number = more;`: "tool.ts:2: Type 'number' is not assignable to type 'string'. (TS2322); tool.ts:2: Type 'string' is not assignable",
		`import { s } from "exported/sub/deep/a"; const n: number = s;`:                    "Type 'string' is not assignable",
		`import { only } from "exported/only"; const n: number = only;`:                    "Type 'string' is not assignable",
		`import { part } from "versions/part"; const s: string = part;`:                    "Type 'number' is not assignable",
		`import { v } from "versions"; const s: string = v;`:                               "Type 'number' is not assignable",
		`import { b } from "bare"; const s: string = b;`:                                   "Type 'number' is not assignable",
		`import { t } from "bare/folder"; const s: string = t;`:                            "Type 'number' is not assignable",
		`import { f } from "plain"; const s: string = f({ a: "x" });`:                      "Type 'number' is not assignable",
		`import { scoped } from "@s/scoped"; const s: string = scoped;`:                    "Type 'number' is not assignable",
		`import { b, c } from "outer"; const s: number = b; const n: string = c;`:          "tool.ts:2: Type 'string' is not assignable to type 'number'. (TS2322); tool.ts:2: Type 'number'",
		`import { b } from "bad"; const s: string = b;`:                                    "Type 'number' is not assignable",
		`import { b } from "broken"; const s: string = b;`:                                 "Type 'number' is not assignable",
		`import { days } from "intl"; const s: string = days(1);`:                          "Type 'number' is not assignable to type 'string'",
		`const m = await import("own"); m.makes(1, 2);`:                                    "Property 'makes' does not exist",

		// Code that works, whatever the types say of it.
		`import { Thing } from "own"; new Thing("a").maybe().size;`:                                                   "",
		`import { Thing } from "own"; const t: any = new Thing("a"); t.remove();`:                                     "",
		`import { Thing } from "own"; const t = new Thing("a"); if (t.remove) t.remove();`:                            "",
		`import { Thing } from "own"; const t = new Thing("a"); t.remove?.();`:                                        "",
		`import { Thing } from "own"; const t = new Thing("a"); if ("remove" in t) (t as any).remove(); t.extra;`:     "",
		`import * as all from "own"; const own = all.default ?? all; own.make(1, 2);`:                                 "",
		`import { options } from "own"; options({ indent: 2, undocumented: true } as any); options({ other: 1 });`:    "",
		`import { make } from "own"; make(undefined, 1).title.length;`:                                                "",
		`import main from "main"; main(1).value.length; import * as m from "main"; (m as any).default;`:               "",
		`import { p } from "exported/private/p"; p.anything();`:                                                       "",
		`import { open, out, source } from "node"; open().on("x", () => {}); out().write("x"); source().pipe(out());`: "",
		`import { connect, here } from "all"; connect(1).x; here.anything();`:                                         "",
		`import { render, bytes } from "dom"; render({}, { style: 1 }).body; bytes().toString("hex");`:                "",
		`import { x, part } from "leads"; x.anything(); part.anything();`:                                             "",
		`import { x } from "noJSON"; x.anything();`:                                                                   "",
		`import { y } from "gone"; y.anything();`:                                                                     "",
		`import { z } from "gone/sub/../../own"; z.anything();`:                                                       "",
		`import { format, days } from "intl"; format({ style: "long" }); days(1);`:                                    "",
		`import path from "path"; path.join("a", 1 as any);`:                                                          "",

		// What goes wrong without the types of packages does so with them.
		`import { Thing } from "own"; const n: number = "a"; new Thing("a").maybe().size;`: "tool.ts:2: Type 'string' is not assignable to type 'number'. (TS2322); ",
	} {
		got, warnings := checked(t, c, packages, code)
		if (got == "") != (want == "") || !strings.Contains(got, want) || len(warnings) > 0 {
			t.Errorf("%s\ngot  %s%q\nwant %s", code, got, warnings, want)
		}
	}
	// Types that nobody asked for are not used.
	if err := c.Check(t.Context(), Request{
		Files: map[string][]byte{"tool.ts": []byte(`import { f } from "plain"; export const s: string = f();`)}, Entry: "tool.ts", Packages: packages,
	}); err != nil {
		t.Error(err)
	}
}

// Types of a hostile package cost a draft nothing but their use, and the draft's own mistakes are found.
func TestBombsOfPackages(t *testing.T) {
	c := newChecker(t, 5*time.Second)
	const own = `const n: number = "a";`
	const found = "tool.ts:2: Type 'string' is not assignable to type 'number'. (TS2322); "
	chain := map[string]string{"p/package.json": `{"types": "f0.d.ts"}`}
	for i := range maxTypeFiles + 1 {
		chain[fmt.Sprintf("p/f%d.d.ts", i)] = fmt.Sprintf("export * from \"./f%d.js\"; export const v%d: number;", i+1, i)
	}
	deep := `{"exports": ` + strings.Repeat(`{"types": `, 5000) + `"./x.d.ts"` + strings.Repeat(`}`, 5000) + `}`
	keys := map[string]string{"p/package.json": `{"exports": {"./x": "./x.js"` + strings.Repeat(`, "./a/*": "./b.js"`, 50_000) + `}}`, "p/x.d.ts": "export const v0: number;"}
	for i := range 300 {
		keys["p/x.d.ts"] += fmt.Sprintf("export { a as a%d } from \"p/gone%d\";\n", i, i)
	}
	for name, test := range map[string]struct {
		files map[string]string
		code  string
		warns string
	}{
		"recursion":    {map[string]string{"p/package.json": `{"types": "p.d.ts"}`, "p/p.d.ts": `type B<N extends number, A extends unknown[] = []> = A["length"] extends N ? A : B<N, [...A, A]>; type U<S extends string, D extends unknown[] = []> = D["length"] extends 6 ? S : U<` + "`${S}${0|1|2|3|4|5|6|7}`" + `, [...D, 0]>; export declare const v0: U<"a"> & U<"b"> & U<"c">; export declare function f<T>(a: T extends U<"x"> ? 1 : B<900>): U<"y">;`}, `import { v0, f } from "p"; f(v0 as any); const q: string = v0;`, "too complex"},
		"a union":      {map[string]string{"p/package.json": `{"types": "p.d.ts"}`, "p/p.d.ts": "type D = 0|1|2|3|4|5|6|7|8|9; type X = `${D}${D}${D}${D}`; export declare const v0: `${X}`; export declare const w: { [K in X as `a${K}`]: { [L in X]: K } };"}, `import { v0, w } from "p"; const q: string = v0; const z: { a: 1 } = w;`, ""},
		"large":        {map[string]string{"p/package.json": `{"types": "p.d.ts"}`, "p/p.d.ts": "export declare const v0: number;" + strings.Repeat(";", maxTypeBytes)}, `import { v0 } from "p"; v0.x;`, "the types of p were not used in the check, because they are too large"},
		"comments":     {map[string]string{"p/package.json": `{"types": "p.d.ts"}`, "p/p.d.ts": "export declare const v0: number;" + strings.Repeat("/* a */", maxTypeBytes/7)}, `import { v0 } from "p"; v0.x;`, ""},
		"much to read": {map[string]string{"p/package.json": `{"types": "p.d.ts"}`, "p/p.d.ts": "export declare const v0: number;" + strings.Repeat("/* a */", maxTypeRead/7)}, `import { v0 } from "p"; v0.x;`, "too large"},
		"many files":   {chain, `import { v0 } from "p"; v0.x;`, "too large"},
		"nested":       {map[string]string{"p/package.json": deep, "p/x.d.ts": "export const v0: number;"}, `import { v0 } from "p"; v0.x;`, ""},
		"deep types":   {map[string]string{"p/package.json": `{"types": "p.d.ts"}`, "p/p.d.ts": "export declare const v0: " + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + ";"}, `import { v0 } from "p"; v0.x;`, "too complex"},
		"many keys":    {keys, `import { v0 } from "p/x"; (v0 as any).x;`, ""},
		"a circle":     {map[string]string{"p/package.json": `{"types": "p.d.ts"}`, "p/p.d.ts": `export * from "p"; export * from "./p.js"; export declare const v0: number;`}, `import { v0 } from "p"; (v0 as any).x;`, ""},
		"a full path":  {map[string]string{"p/package.json": `{"types": "/etc/passwd"}`, "p/index.d.ts": "/// <reference path=\"../../../etc/passwd\" />\n/// <reference path=\"/etc/passwd\" />\nexport const v0: number;"}, `import { v0 } from "p"; (v0 as any).x;`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, warnings := checked(t, c, treeOf(test.files), test.code+own)
			if got != found && (name != "a union" || !strings.Contains(got, found)) {
				t.Errorf("got %.1000s", got)
			}
			if text := strings.Join(warnings, "; "); (text == "") != (test.warns == "") || !strings.Contains(text, test.warns) {
				t.Errorf("warned %q, want %q", text, test.warns)
			}
		})
	}
}

// TestComplexTypesAreRemembered checks twice with types that never end. The second check goes without them at once, in another checker too.
func TestComplexTypesAreRemembered(t *testing.T) {
	packages := treeOf(map[string]string{
		"p/package.json": `{"types": "p.d.ts"}`,
		"p/p.d.ts":       fmt.Sprintf("export type T%d = 1; ", time.Now().UnixNano()) + `type B<N extends number, A extends unknown[] = []> = A["length"] extends N ? A : B<N, [...A, A]>; type U<S extends string, D extends unknown[] = []> = D["length"] extends 6 ? S : U<` + "`${S}${0|1|2|3|4|5|6|7}`" + `, [...D, 0]>; export declare const v0: U<"a"> & U<"b"> & U<"c">; export declare function f<T>(a: T extends U<"x"> ? 1 : B<900>): U<"y">;`,
	})
	const code = `import { v0, f } from "p"; f(v0 as any); const q: string = v0; const n: number = "a";`
	const found = "tool.ts:2: Type 'string' is not assignable to type 'number'. (TS2322); "
	const warned = "the types of p were not used in the check, because they are too complex: what comes from there has the type any"
	never := func(_, _ time.Duration) bool { return false }
	const cpu = 2 * time.Second
	first := newChecker(t, cpu)
	key := first.key(imported(packages, nil, map[string]string{"tool.ts": code}))
	first.hindered = func(took, used time.Duration) bool {
		if used < cpu || took < used {
			t.Errorf("the check took %v and used %v", took, used)
		}
		return true
	}
	got, warnings := checked(t, first, packages, code)
	if got != found || len(warnings) != 1 || !strings.Contains(warnings[0], "too complex for the time that a busy machine has: what comes from there") {
		t.Fatalf("on a busy machine: got %q, warned %q", got, warnings)
	}
	first.hindered = never
	if first.failedBefore(key) {
		t.Error("types are refused that were not too complex, or not seen")
	}
	got, warnings = checked(t, first, packages, code)
	if got != found || !slices.Equal(warnings, []string{warned}) {
		t.Fatalf("got %q, warned %q", got, warnings)
	}
	if !first.failedBefore(key) {
		t.Error("it is not remembered")
	}
	again := newChecker(t, cpu) // as another process would
	if !again.failedBefore(key) {
		t.Error("it is not remembered in the cache")
	}
	got, warnings = checked(t, again, packages, `import { f } from "p"; f(3); const n: number = "a";`)
	if got != found || !slices.Equal(warnings, []string{warned}) {
		t.Errorf("got %q, warned %q", got, warnings)
	}
	if again.failedBefore(again.key(imported(treeOf(typedPackages), nil, map[string]string{"tool.ts": `import "own"`}))) {
		t.Error("other types are refused with them")
	}
	longer := newChecker(t, 0)
	if longer.failedBefore(longer.key(imported(packages, nil, map[string]string{"tool.ts": code}))) {
		t.Error("a checker that has more time refuses them")
	}
	o := first.o
	o.RememberDir = t.TempDir()
	elsewhere, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = elsewhere.Close() }()
	if elsewhere.failedBefore(key) {
		t.Error("a checker that remembers elsewhere refuses them")
	}
}

// TestHindered tells a check that others slowed down from one that took what it takes.
func TestHindered(t *testing.T) {
	for _, test := range []struct {
		took time.Duration
		want bool
	}{{15 * time.Second, false}, {17 * time.Second, false}, {20 * time.Second, true}, {time.Minute, true}} {
		if got := hindered(test.took, 15*time.Second); got != test.want {
			t.Errorf("%v: got %v", test.took, got)
		}
	}
}

// FuzzTypes has manifests of packages that lead to nothing outside of the packages.
func FuzzTypes(f *testing.F) {
	for _, name := range slices.Sorted(maps.Keys(typedPackages)) {
		if strings.HasSuffix(name, "package.json") {
			f.Add(typedPackages[name], "sub/a", `export * from "./x.js";`)
		}
	}
	f.Fuzz(func(t *testing.T, manifest, sub, text string) {
		tree := fstest.MapFS{
			"node_modules/p/package.json": {Data: []byte(manifest)}, "node_modules/p/x.d.ts": {Data: []byte(text)}, "node_modules/p/sub/a.d.ts": {Data: []byte(text)},
			"node_modules/q/index.d.ts": {Data: []byte(text)}, "node_modules/q/package.json": {Data: []byte(`{}`)}, "secret.d.ts": {Data: []byte(text)},
		}
		found := imported(tree, nil, map[string]string{"tool.ts": fmt.Sprintf("import %q; import \"p\"; import \"p/x\"", "p/"+sub)})
		for name := range found.Files {
			if !strings.HasPrefix(name, "node_modules/") || !fs.ValidPath(name) {
				t.Errorf("%q", name)
			}
		}
	})
}
