package tserase_test

import (
	"strings"
	"testing"

	"github.com/stilehost/stile/internal/tserase"
)

// What stays where it is, and what becomes spaces. A want of "" means that the text is left to a compiler.
func TestBody(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"return 1", "return 1"},
		{"const n: number = input as any", "const n         = input       "},
		{"let a!: string, b: A<B<C>>= 1;", "let a         , b         = 1;"},
		{"type A = { a: 1 }\n(b)", ";                \n(b)"},
		{"x\ninterface A { a: 1 }\n[0]", "x\n;                   \n[0]"},
		{"f<A, B[]>(x)!.y![0]", "f        (x) .y [0]"},
		{"f<T>`${x as T}`", "f   `${x     }`"},
		{"new Map<string, number>()", "new Map                ()"},
		{"const f = async <T,>(x?: T, ...y: T[]): Promise<T> => x", "const f = async     (x    , ...y     )             => x"},
		{"function f(a: { b(): void }, b = 1): a is B { }", "function f(a               , b = 1)         { }"},
		{"const { a, b: [c] }: X = y satisfies Z", "const { a, b: [c] }    = y            "},
		{"for (const a of b as C[]) ;", "for (const a of b       ) ;"},
		{"try { } catch (e: any) { }", "try { } catch (e     ) { }"},
		{"a ? (b) : c", "a ? (b) : c"},
		{"a ? (b): c[] => d : e", ""},
		{"switch (a) { case (b): c => d }", ""},
		{"a < b", "a < b"},
		{"a < b && c > d", ""},
		{"a < b; c > d", "a < b; c > d"},
		{"f<typeof import('x')>(y)", ""},
		{"f<unique symbol>(y)", ""},
		{"a as b\n(c)", ""},
		{"a + b as c * d", ""},
		{"a as b as c", "a          "},
		{"a as T extends U ? 1 : 2", ""},
		{"(a): {\n} => b", ""},
		{"const é: string = 'ü'", "const é         = 'ü'"},
		{"let a: 'ü'", ""},
		{"<any>a", ""},
		{"return <T,\n>(x) => x", ""}, // the line would end behind return
		{"f(async <T\n>(x: T) => x)", ""},
		{"f(a < b[i], c > (d))", "f(a             (d))"},
		{"f(a < b[i, j], c > (d))", ""},
		{"f(a < b[i + 1], c > (d))", ""},
		{"f(a < [...b], c > (d))", "f(a               (d))"},
		{"f(a < [1 + b], c > (d))", ""},
		{"f(a < { b: 1, c() {} } > (d))", ""},
		{"f(a < { b: 1 + c } > (d))", ""},
		{"f(a < ((b = 1) => c) > (d))", ""},
		{"f(a < typeof 1, b > (c))", ""},
		{"f(a < new B, c > (d))", ""},
		{"a as any < b > [0]", ""},
		{"f<{ a: A; readonly b?: B\n c: (d: D, ...e: E[]) => void }, [A, b: B]>(x)", "f                       \n                                           (x)"},
		{"function f(this: A) {}", ""},
		{"function f(): void;\nfunction f() {}", ""},
		{"class A {}", ""},
		{"x = class {}", ""},
		{"enum A {}", ""},
		{"const enum A {}", ""},
		{"namespace A {}", ""},
		{"declare let a", ""},
		{"import a from 'a'", ""},
		{"export {}", ""},
		{"import('a')", "import('a')"},
		{"@a b", ""},
		{"using a = b", ""},
		{"await using a = b", ""},
		{"}} export {}; {{", ""},
		{"return 1 }", ""},
		{"a b", ""},
		{"let", ""},
		{"`${", ""},
		{"/*", ""},
		{"a\u2028b", ""},
		{"a\rb", ""},
		{"a\r\nb", "a\r\nb"},
		{"a\x00", ""},
		{"\xff", ""},
		{"\uFEFFa", ""},
		{"a // \u2028 b", ""},
		{strings.Repeat("(", 100_000), ""},
		{strings.Repeat("a ? ", 10_000) + "b", ""},
		{strings.Repeat("-", 100_000) + "a", ""},
	} {
		got, ok := tserase.Body(c.text)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%.100q: got %.100q, %v, want %q", c.text, got, ok, c.want)
		}
	}
}

// FuzzBody compares what remains with what a compiler makes of the text.
func FuzzBody(f *testing.F) {
	for _, text := range []string{"const n: number = input as any", "f<A>(x)!.y", "a ? (b): c => d : e", "type A = 1\n(b)", "a < b > c", "`${a as B}`", "({ a(): B {}, get c() {} })"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if different, _ := difference(text); different != "" && !strings.HasPrefix(different, "it has a mistake") {
			t.Errorf("%q: %s", text, different)
		}
	})
}

// BenchmarkWorst reads 64 KiB of what could take longer than linear time.
func BenchmarkWorst(b *testing.B) {
	for name, text := range map[string]string{
		"less": "a<", "colons": "a?(b):", "cases": "case(a):", "types": "x as A<", "arrows": "(a)=>", "params": "(a: b, ", "templates": "`${", "erased": "a as B;", "blocks": "{}", "unions": "|A",
	} {
		b.Run(name, func(b *testing.B) {
			text := strings.Repeat(text, 64<<10/len(text))
			switch name {
			case "cases":
				text = "switch(a){" + text + "}"
			case "unions":
				text = "let a: " + text
			}
			for b.Loop() {
				tserase.Body(text)
			}
		})
	}
}
