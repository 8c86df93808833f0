package inspect

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/evanw/esbuild/pkg/api"
)

// The content of strings, comments, templates and regular expressions is not code. Expressions inside templates are.
func TestLex(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"comments", "a // b\n/* c */ d", "a d"},
		{"strings", `"export default" 'x\'y' ""`, `"export default" 'x\'y' ""`},
		{"a string over lines", "'a\\\nb' 'c\\\r\nd'", "'a\\\nb' 'c\\\r\nd'"},
		{"division", "a / b / c", "a / b / c"},
		{"regular expression", `x = /"[/"]\//g.test(y)`, `x = /"[/"]\//g . test ( y )`},
		{"after a parenthesis", `(a) /b/ c`, `( a ) / b / c`},
		{"after if", `if (a) /"/.test(b)`, `if ( a ) /"/ . test ( b )`},
		{"after return", "return /'/", "return /'/"},
		{"a keyword as a name", "a.return / 2; '/'", "a . return / 2 ; '/'"},
		{"after not null", `a! / 2; "/"`, `a ! / 2 ; "/"`},
		{"on lines in parentheses", "(a\n/ b / c)", "( a / b / c )"},
		{"template", "`a${b}c${`d${e}`}f` g", "`a${ b }c${ `d${ e }` }f` g"},
		{"a brace in a template", "`${{ a: 1 }}`", "`${ { a : 1 } }`"},
		{"numbers", "1..x 1.5e-3 0xfFn .5 1_000 a?.5:1 a?.b", "1. . x 1.5e-3 0xfFn .5 1_000 a ? .5 : 1 a ?. b"},
		{"hashbang", "#!/usr/bin/env '\na", "a"},
		{"byte order mark", "\uFEFFa", "a"},
		{"line separators", "// a\u2028b", "b"},
		{"private", "this.#a", "this . #a"},
		{"type arguments", "a<b<c>>(d)", "a < b < c > > ( d )"},
		{"arrow", "<T>(x: T) => x", "< T > ( x : T ) => x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := lex("a.ts", tt.text, false)
			var got []string
			for i := range s.tokens {
				got = append(got, s.at(i))
			}
			if strings.Join(got, " ") != tt.want || s.unclear != "" {
				t.Errorf("got %q, %s\nwant %q", strings.Join(got, " "), s.unclear, tt.want)
			}
		})
	}
}

// Code that can be read in two ways is reported, with its place.
func TestLexDoubts(t *testing.T) {
	for _, tt := range []struct {
		text string
		at   int
	}{
		{`x = {} / 1; "/"`, 7},
		{"let y\n/\"/; x", 6},
		{`x = y as B<C> / 1; "/"`, 14},
		{`var of = 1; x = of / 1`, 19},
		{"a\n--> b", 2},
		{"<!-- b", 0},
		{`x = \u0061`, 10},
		{`"a`, 2},
		{"`a", 2},
		{"/* a", 0},
		{"(a]", 2},
		{"((a)", 4},
		{"x = /a\n/", 6},
		{"3in x", 1},
	} {
		if s := lex("a.ts", tt.text, false); s.unclear == "" || s.unclearAt != tt.at {
			t.Errorf("%q: %q at %d, want %d", tt.text, s.unclear, s.unclearAt, tt.at)
		}
	}
	if s := lex("a.tsx", "x = <a>it's</a>", true); s.unclear == "" || s.unclearAt != 4 {
		t.Errorf("JSX: %q at %d", s.unclear, s.unclearAt)
	}
}

func TestUnescape(t *testing.T) {
	for _, tt := range []struct {
		text, want string
		ok         bool
	}{
		{`a\n\x41\u0042\u{43}\ud83d\ude00\'\q\0`, "a\nABC😀'q\x00", true},
		{"a\\\r\nb", "ab", true},
		{`\ud800`, "�", false},
		{`\ud800\u0041`, "�A", false},
		{`\x4`, `\x4`, false},
		{`\u{110000}`, `\u{110000}`, false},
		{`\07`, `\07`, false},
		{"\xff", "\xff", false},
	} {
		if got, ok := unescape(tt.text); got != tt.want || ok != tt.ok {
			t.Errorf("%q: %q, %v", tt.text, got, ok)
		}
	}
}

// hostile are texts that could break a reader.
var hostile = []string{
	"", "\x00", "\xff\xfe", "`${`${`${", "}}}}", "((((", `"\`, "'\\\r\n'", "/[/]/", "a/b/c", "<!-- -->", "x\n--> y", "1e", "0x", "1_n", "\\u{", "#!", "#",
	"export default", "export {", "export const f = (", "export function f(a: ", "export * as default from 'x'", "import { a as", "type A = ", "enum A { B = ",
	"export function f({a}: {a: number}) {}", "export const f = <T>(x: T) => x", "run(a, {b", "run: (a, env) => env[", "`https://${a}.example.com`", "@a export class B {}",
	"export function f(a: A) {}\ninterface A { [k: string]: A; b?: readonly A[] }", "interface A extends A {}\nexport function f(a: A) {}",
	"type A = A | A\nexport const f = (a: A) => a", "export function f(a = <b, c>(d)) {}", "export function f(...a: [b, ...c[]]) {}", "/** @param {a b */export function f() {}",
	"'\\x41\\x41\\x41\\x41\\x41\\x41\\x41\\x41'", "a['push'](a['shift']())", "env?.['a'].b; const {c, ...d} = env; (e: Env) => e.f", "\u202e", "//a\u2028b",
}

func FuzzLex(f *testing.F) {
	for _, text := range hostile {
		f.Add(text, false)
		f.Add(text, true)
	}
	f.Fuzz(func(t *testing.T, text string, jsx bool) {
		s := lex("a.ts", text, jsx)
		end := int32(0)
		for i, token := range s.tokens {
			if token.start < end || token.end <= token.start || int(token.end) > len(text) {
				t.Fatalf("token %d is %d to %d, after %d of %d", i, token.start, token.end, end, len(text))
			}
			end = token.end
			if m := int(token.match); m > i && m < len(s.tokens) && s.tokens[m].match < 0 || m > len(s.tokens) || m == i {
				t.Fatalf("token %d matches %d", i, m)
			}
			s.value(i)
		}
		for offset := 0; offset <= len(text); offset += 1 + len(text)/10 {
			if offset == len(text) || utf8.RuneStart(text[offset]) {
				inside(t, text, s.place(offset))
			}
		}
	})
}

// inside checks that a position is within the text.
func inside(t *testing.T, text string, p Place) {
	t.Helper()
	lines := strings.FieldsFunc("x"+strings.NewReplacer("\r\n", "\n\x00", "\r", "\n\x00", "\n", "\n\x00", "\u2028", "\n\x00", "\u2029", "\n\x00").Replace(text), func(r rune) bool { return r == '\n' })
	if p.Line < 1 || p.Line > len(lines) || p.Column < 1 || p.Column > len([]rune(lines[p.Line-1]))+1 {
		t.Fatalf("%v is outside of %q", p, text)
	}
}

// bundlerExports is the exports of a module according to esbuild. ok is false if esbuild refuses the module or takes long.
func bundlerExports(text string) (names []string, ok bool) {
	type answer struct {
		names []string
		ok    bool
	}
	done := make(chan answer, 1)
	go func() {
		r := api.Build(api.BuildOptions{
			Stdin: &api.StdinOptions{Contents: text + "\nexport {}\n//# sourceMappingURL=none:", Loader: api.LoaderTS}, Metafile: true, Format: api.FormatESModule,
			Outfile: "out.js", TsconfigRaw: "{}", LogLevel: api.LogLevelSilent,
		})
		_, list, found := strings.Cut(r.Metafile, `"exports": [`)
		list, _, _ = strings.Cut(list, "]")
		var a answer
		for name := range strings.FieldsFuncSeq(list, func(r rune) bool { return strings.ContainsRune(" \n,\"", r) }) {
			a.names = append(a.names, name)
		}
		a.ok = found && len(r.Errors) == 0
		done <- a
	}()
	select {
	case a := <-done:
		return a.names, a.ok
	case <-time.After(10 * time.Second):
		return nil, false
	}
}

// disagreement compares the exports found here with the bundler's, for code that both understand with certainty.
func disagreement(text string) string {
	m := readModule(lex("a.ts", text, false))
	if m.unclear != "" || strings.Contains(text, `\u`) {
		return ""
	}
	theirs, ok := bundlerExports(text)
	if !ok {
		return ""
	}
	if isDefault := len(m.defaults) > 0; isDefault != slices.Contains(theirs, "default") && !strings.Contains(text, "interface") {
		return fmt.Sprintf("default: %v, and %q", isDefault, theirs)
	}
	p := parser{module: m}
	for _, e := range m.exports {
		if f := p.function(e); f != nil && p.problem == nil && !slices.Contains(theirs, e.name) {
			return fmt.Sprintf("%q is not in %q", e.name, theirs)
		}
	}
	return ""
}

// The bundler, which parses all of the language, finds the same exports.
func TestExportsAgreeWithBundler(t *testing.T) {
	for _, text := range []string{
		"const s = 'export default 1' // export default 2\n/* export default 3 */ export function a() {}",
		"`export default ${'export default'}`; export const b = 1",
		"export { c as default }; function c() {}",
		"export { c as d, type E }; function c() {} type E = 1",
		"export default class {}", "export * as default from 'x'", "const x = { export: 1, default: 2 }; x.export; export async function f() {}",
		"export function* g() {}", "export const a = 1, b = 2", "export enum E { A }", "declare module 'x' { export default 1 }", "namespace N { export const x = 1 }",
		"if (a) /export default 1/.test(b)\nexport function f(a = /'/) {}", "x = a\n/ 2 / 3 // '\nexport function h() {}", "export type T = 1; export interface I {}; export abstract class C {}",
	} {
		if _, ok := bundlerExports(text); !ok {
			t.Errorf("%q: the bundler refuses it", text)
		}
		if d := disagreement(text); d != "" {
			t.Errorf("%q: %s", text, d)
		}
	}
}

func FuzzExportsAgreeWithBundler(f *testing.F) {
	for _, text := range hostile {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 500 {
			t.Skip()
		}
		if d := disagreement(text); d != "" {
			t.Error(d)
		}
	})
}
