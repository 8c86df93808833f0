package toolchain

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
)

// Endlessly nested code is refused, whatever it nests and however it hides that. A parser that reached it
// would end the process.
func TestNestingIsBounded(t *testing.T) {
	const n = 1_000_000
	nests := map[string][3]string{
		"(": {"x = ", "(", ""}, "[": {"x = ", "[", ""}, "{": {"", "{", ""}, "!": {"x = ", "!", ""}, "- ": {"x = ", "- ", ""}, "=>": {"x = ", "a=>", "1"},
		"?": {"x = ", "a?", ""}, ":": {"x = ", "a?b:", "1"}, "if": {"", "if(a)", ";"}, "else": {"", "if(a){}else ", ";"}, "else;": {"", "if(a);else ", ";"},
		"new": {"x = ", "new ", "a"}, "await": {"x = ", "await ", "a"}, ".": {"x = a", ".a", ""}, "call": {"x = a", "()", ""}, "index": {"x = a", "[0]", ""},
		"?.": {"x = a", "?.a", ""}, "**": {"x = 1", "**a", ""}, "=": {"x = ", "a=", "1"}, "label": {"", "a:", ";"}, "${": {"x = ", "`${", ""},
		"function": {"x = ", "function f(){", ""}, "for": {"", "for(;;)", ";"}, "do": {"", "do ", ";"}, "type <": {"let x: ", "a<b,", ""}, "keyof": {"let x: ", "keyof ", "a"}, "keyof lines": {"let x: ", "keyof\n", "a"}, "readonly lines": {"let x: ", "readonly\n", "a[]"}, "await lines": {"", "await\n", "a"},
		"else lines": {"", "if(a){}\nelse\n", ";"}, "if lines": {"", "if(a)\n", ";"}, "label lines": {"", "a:\n", ";"}, "new lines": {"x = ", "new\n", "a"}, "as lines": {"x = a", "\nas a", ""}, "extends lines": {"let x: ", "{}\nextends\n{}?a:", "d"},
		"type ?": {"let x: ", "a extends b?c:", "d"}, "type (": {"let x: ", "(a:", ""}, "class": {"x = ", "class extends ", "a"}, "object": {"x = ", "{a:", "1"},
		"typeof": {"x = ", "typeof ", "a"}, "!(": {"x = ", "!(", ""}, "[,": {"x = ", "[1,", ""}, "(;": {"", "{;", ""}, "namespace": {"namespace ", "a.", "a {}"},
		"class lines": {"x = ", "class\nA extends ", "B"}, "decorated class": {"x = ", "@a()\nclass extends ", "B"}, "decorated export": {"", "export @a.b\n", "class B {}"},
		"abstract lines": {"let x: ", "abstract\nnew()=>", "a"}, "is lines": {"let x: (a) => ", "a is\n", "b"}, "assertion lines": {"let x: (a) => ", "asserts\na\nis\n", "b"},
		",": {"", "a,", "b"}, "(,": {"x = (", "a,", "b)"}, "a[,": {"x = a[", "a,", "b]"}, "?.a,": {"x = a", "?.a,b", ""},
		"tag": {"x = a", "``", ""}, "x!": {"x = a", "!", ""}, "case": {"", "switch(a){case a:", ""},
	}
	for name, nest := range nests {
		t.Run(name, func(t *testing.T) {
			times := min(n, (maxAlone-64)/len(nest[1]))
			refusesNesting(t, "main.ts", nest[0]+strings.Repeat(nest[1], times)+nest[2])
		})
	}
	deep := strings.Repeat("(", n)
	for name, code := range map[string]string{
		"after a string":             `x = "'"; x = ` + deep,
		"after an escape":            `x = "\""; x = ` + deep,
		"after a template":           "x = `'${'`'}\"`; x = " + deep,
		"after a comment":            "/* ' */ // \"\n x = " + deep,
		"after a line separator":     "// \u2028 x = " + deep,
		"after a regular expression": `x = /"/; x = ` + deep,
		"with a class":               `x = /["/]/; x = ` + deep,
		"after if":                   `if (a) /"/; x = ` + deep,
		"after for await":            `for await (a of b) /"/; x = ` + deep,
		"after a block":              `{} /"/; x = ` + deep,
		"after an object":            `x = {} / 1; "/"; x = ` + deep,
		"after a keyword property":   `x = a.return / 1; "/"; x = ` + deep,
		"after a number":             `x = 1./1; "/"; x = ` + deep,
		"after a postfix":            `x = a++ / 1; "/"; x = ` + deep,
		"after a prefix":             "x = a\n++/\"/.x; x = " + deep,
		"after a non-null":           `x = a! / 1; "/"; x = ` + deep,
		"after type arguments":       `x = a as B<C> / 1; "/"; x = ` + deep,
		"after a contextual keyword": `var of = 1; x = of / 1; "/"; x = ` + deep,
		"after an HTML comment":      "x\n<!-- /*\n x = " + deep,
		"after its end":              "x\n--> /*\n x = " + deep,
		"after its end at the start": "--> /*\n x = " + deep,
		"after odd space":            "x = \u00a0/\"/; x = " + deep,
		"after a byte order mark":    "\uFEFFx = " + deep,
		"after a hashbang":           "#! '\nx = " + deep,
		"after an escaped name":      `x = \u0061 / 1; "/"; x = ` + deep,
		"after a debugger line":      "debugger\n/\"/; x = " + deep + `"`,
		"after a declaration line":   "let y\n/\"/; x = " + deep + `"`,
		"after an import line":       "import './y'\n/\"/; x = " + deep + `"`,
		"after a type line":          "type y = z\n/\"/; x = " + deep + `"`,
		"after an odd line":          "type y = 1\u2028/\"/; x = " + deep + `"`,
		"after a type void":          "x = y as void / " + deep + "/",
		"between line breaks":        strings.Repeat("x = \\\n(\n", n),
		"with closing strings":       "x = " + strings.Repeat(`(")",`, n),
		"with closing comments":      "x = " + strings.Repeat(`(/*)*/`, n),
		"with closing templates":     "x = " + strings.Repeat("(`)`,", n),
	} {
		t.Run(name, func(t *testing.T) { refusesNesting(t, "main.ts", code) })
	}
	t.Run("JSX", func(t *testing.T) { refusesNesting(t, "main.tsx", "x = "+strings.Repeat("<a>", n)) })
	t.Run("JSON", func(t *testing.T) {
		_, err := bundleTree(t, "main.ts", map[string]string{"main.ts": `import x from "./x.json"; export default x`, "x.json": strings.Repeat("[", n)})
		if err == nil || !strings.Contains(err.Error(), "nested deeper") {
			t.Fatalf("got %.200v", err)
		}
	})
}

// A list of data is not nesting, however long it is. Neither is a division on a line of its own.
func TestNestingOfLists(t *testing.T) {
	for name, code := range map[string]string{
		"an array":            "x = [" + strings.Repeat("1,", 1_000_000) + "]",
		"a line of divisions": strings.Repeat("x = y\n  / z\n", 100_000),
		"sequences":           strings.Repeat("a,b,c;", 100_000),
		"decorated fields":    strings.Repeat("class A { @a() x = 1\n @b y = 2\n }\n", 10_000),
	} {
		if n := nestingOf(code, api.LoaderTS); n.levels > usualNesting || n.unclear != "" {
			t.Errorf("%s: %d levels, %s", name, n.levels, n.unclear)
		}
	}
}

// An unterminated construct hides nothing: esbuild reports the error and its place.
func TestNestingOfWhatDoesNotEnd(t *testing.T) {
	code := strings.Repeat("a = b.c(d, 1);\n", 10_000)
	for _, end := range []string{"`a", "`${", "x = /a", "'", `"\`, "(", "`a${b}"} {
		if n := nestingOf(code+end, api.LoaderTS); n.levels > usualNesting || n.unclear != "" {
			t.Errorf("%q: %d levels, %s", end, n.levels, n.unclear)
		}
	}
}

func refusesNesting(t *testing.T, entry, code string) {
	t.Helper()
	_, err := bundleTree(t, entry, map[string]string{entry: code})
	var failure *BuildError
	if !errors.As(err, &failure) {
		t.Fatalf("got %v", err)
	}
	text := failure.Problems[0].Text
	for _, want := range []string{"nested deeper", "nesting is unclear"} {
		if strings.Contains(text, want) {
			return
		}
	}
	t.Fatalf("it was parsed: %.200s", text)
}

func TestNestingOfAllFiles(t *testing.T) {
	files := map[string]string{"main.ts": ""}
	for i := range 200 {
		name := fmt.Sprintf("m%d.ts", i)
		files["main.ts"] += fmt.Sprintf("import './%s';\n", name)
		files[name] = "x = " + strings.Repeat("(", 600) + "1" + strings.Repeat(")", 600)
	}
	if _, err := bundleTree(t, "main.ts", files); err == nil || !strings.Contains(err.Error(), "like too many files before it") {
		t.Fatalf("got %.200v", err)
	}
}

func TestNestingAccepts(t *testing.T) {
	for name, line := range map[string]string{
		"statements":    "const a%d = b.c(d, [1, 2]) / 2; if (a) { /re[/]/.test(x) } else { y = `t${a + `${b}`}` }\n",
		"no semicolons": "function f%d(a) {\n  const r = a.b / 2\n  return /x/.test(r) ? { a: 1 } : a++ / 2\n}\n",
		"functions":     "function f%d(a){if(a){b}if(c){d}else{e}}",
		"minified":      "var a%d=function(b){return b>0&&b<1?/x/.test(b)?1/b:b++/2:-b},",
		"comments":      "/** it's (not [balanced */ let v%d = 1 // don't (\n",
		"types":         "export interface I%d<T extends string> { m<U>(a: Map<string, U[]>): T | undefined; readonly [k: string]: unknown }\n",
	} {
		var code strings.Builder
		for i := range 3000 {
			fmt.Fprintf(&code, line, i)
		}
		if n := nestingOf(code.String(), api.LoaderTS); n.levels > usualNesting || n.unclear != "" {
			t.Errorf("%s: %d levels, %s", name, n.levels, n.unclear)
		}
	}
}

func FuzzNesting(f *testing.F) {
	for _, s := range []string{"a/b/c", "`${a}`", "/[/]/", "<!-- --> ++/", "'\\\r\n'", "}\u2028/", "#!\n", "1./2", "a!/b", "({[`"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		nestingOf(text, api.LoaderTS)
	})
}
