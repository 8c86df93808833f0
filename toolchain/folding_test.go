package toolchain

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/stilehost/stile/internal/usagetest"
)

// TestFolding has enums of a few hundred bytes with a member of gigabytes, and enums that people write.
func TestFolding(t *testing.T) {
	t.Parallel()
	doubling := func(each string) string {
		members := []string{"a0 = 'y'"}
		for i := range 32 {
			members = append(members, fmt.Sprintf("a%d = ", i+1)+strings.ReplaceAll(each, "@", fmt.Sprintf("a%d", i)))
		}
		return strings.Join(members, ", ") + " }"
	}
	apart := "enum E0 { a = 'y' }"
	for i := range 32 {
		apart += fmt.Sprintf("enum E%d { a = E%d.a + E%d.a }", i+1, i, i)
	}
	bombs := map[string]string{
		"additions": "enum E { " + doubling("@ + @"), "const": "export const enum E{" + doubling("@+@"), "templates": "enum E { " + doubling("`${@}${@}`"),
		"with texts": "enum E { " + doubling(`@ + "x" + @`), "apart": apart,
		"behind a comment": "enum /*{}*/ E // {}\n{" + doubling("@+@"), "behind a text": `x = "enum a {"; enum E { /*"}*/ ` + doubling("@+@"),
		"behind a carriage return": "enum E //\r{" + doubling("@+@"), "behind a line separator": "enum //\u2028E //\u2029{" + doubling("@+@"),
		"behind stars":               "enum E /***//*/**/{" + doubling("@+@"),
		"behind a bracket in a text": `enum E { x = "}", ` + doubling("@+@"), "escaped": `enum \u{61}b { ` + doubling("@+@"),
		"behind a template": "enum E { x = `}`, " + doubling("@+@"), "behind an expression": "enum E { x = /}/, " + doubling("@+@"),
	}
	for name, text := range bombs {
		for _, loader := range []api.Loader{api.LoaderTS, api.LoaderTSX} {
			if err := new(folding).admit(text, loader); err == nil {
				t.Errorf("%s: admitted", name)
			}
		}
		_, err := bundle(t.Context(), Source{FS: tree(map[string]string{"main.ts": text}), Entry: "main.ts"}, nil)
		if err == nil || !strings.Contains(err.Error(), "combine too many") {
			t.Errorf("%s: bundle: %v", name, err)
		}
		if _, err := (Program{Name: "code.ts", Text: text}).transform(t.Context(), api.SourceMapNone, nil); err == nil {
			t.Errorf("%s: transformed", name)
		}
	}
	for name, text := range map[string]string{
		"paths":   "enum Path { Root = '/api', " + doubling(`Root + "/users"`) + strings.Repeat("x = a + b;", 1000),
		"flags":   "enum Flag { None = 0, A = 1 << 0, B = 1 << 1, AB = A | B, Next = A + 1 }" + strings.Repeat("x = `${a}${b}`;", 1000),
		"prose":   "// an enum of these\n" + strings.Repeat("x = { a: b + c };", 1000),
		"schemas": strings.Repeat("x = { enum: ['a', 'b'], c: { d: e + f } };", 1000),
		"many":    strings.Repeat("enum E { A = 'a', B = 'b' }\n", 5000),
	} {
		if err := new(folding).admit(text, api.LoaderTS); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestInlining has enums with a long member that is used often: in the same file, in another one and by other members.
func TestInlining(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("y", 60_000)
	const often = 2000
	for name, files := range map[string]map[string]string{
		"in one file":      {"main.ts": `enum E { a = "` + long + `" }; export default [` + strings.Repeat("E.a, ", often) + "];"},
		"by index":         {"main.ts": `const enum E { a = "` + long + `" }; export default [` + strings.Repeat(`E["a"], `, often) + "];"},
		"by members":       {"main.ts": `enum E { a = "` + long + `"` + strings.Repeat(", b = a", often) + " }; export default E;"},
		"joined":           {"main.ts": "enum E { a = '" + long[:30_000] + "', b = a + '" + long[:30_000] + "' }; export default [" + strings.Repeat("E.b, ", often) + "];"},
		"with escapes":     {"main.ts": `enum E { a = "\"` + long + `" }; export default [` + strings.Repeat("E.a, ", often) + "];"},
		"in another file":  {"main.ts": `import { E } from "./e"; export default [` + strings.Repeat("E.a, ", often) + "];", "e.ts": `export enum E { a = "` + long + `" }`},
		"in another, JS":   {"main.ts": `import x from "./x.js"; export default x;`, "x.js": `import { E } from "./e.ts"; export default [` + strings.Repeat("E.a, ", often) + "];", "e.ts": `export enum E { a = "` + long + `" }`},
		"in many a little": {"main.ts": `import x from "./x"; import y from "./y"; export default [x, y];`, "x.ts": `import { E } from "./e"; export default [` + strings.Repeat("E.a, ", often/2) + "];", "y.ts": `import { E } from "./e"; export default [` + strings.Repeat("E.a, ", often/2) + "];", "e.ts": `export enum E { a = "` + long + `" }`},
	} {
		if _, err := bundle(t.Context(), Source{FS: tree(files), Entry: "main.ts"}, nil); err == nil || !strings.Contains(err.Error(), "too long to write out") {
			t.Errorf("%s: %v", name, err)
		}
	}
	fine := map[string]string{"main.ts": `import { E } from "./e"; export default [` + strings.Repeat("E.a, console.log, ", 20_000) + "];", "e.ts": `export enum E { a = "` + long[:300] + `", b = 2 }`}
	if _, err := bundle(t.Context(), Source{FS: tree(fine), Entry: "main.ts"}, helper("bundle")); err != nil {
		t.Error(err)
	}
}

// TestSearchesAreBounded has what looks like enums, or exports, within others that do not end. Looking for all of them reads the file once for
// each: 256 KiB take more than ten seconds.
func TestSearchesAreBounded(t *testing.T) {
	t.Parallel()
	const size = maxTransform
	for name, unit := range map[string]string{
		"enums": "enum a{", "members": "enum a{b=1,", "templates": "enum a{`", "texts": "enum a{'", "comments": "enum a /*enum b{}", "lines": "enum a//enum b{}", "html": "enum <!--enum b{}",
	} {
		text := strings.Repeat(unit, size/len(unit))
		before := usagetest.Processor()
		if err := new(folding).admit(text, api.LoaderTS); !errors.Is(err, errSearch) {
			t.Errorf("%s: %v", name, err)
		}
		if took := usagetest.Processor() - before; took > 5*time.Second { // also that of other tests
			t.Errorf("%s: it took %v", name, took)
		}
	}
	for name, unit := range map[string]string{"comments": "export/*export*from'a'", "lines": "export//export*from'a'"} {
		s := &stars{said: map[string]map[string]int{}, found: map[string][]string{}, names: map[string]int{}}
		if err := s.load("a.js", strings.Repeat(unit, size/len(unit))); !errors.Is(err, errSearch) && !errors.Is(err, errStars) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, text := range map[string]string{
		"enums":    strings.Repeat("/* an enum */ enum E { A = 1 /* a */, B = `x` } // enum of\n", 3000) + strings.Repeat("enum E { A = 'enum x {' }\n", 3),
		"comments": strings.Repeat("/* of an enum */ enum /* named */ E /* of */ { A = 1 }\n", 3000),
	} {
		if err := new(folding).admit(text, api.LoaderTS); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCommentsEnd looks for what esbuild tries twice, behind comments that end in each way.
func TestCommentsEnd(t *testing.T) {
	t.Parallel()
	for _, comment := range []string{"//\n", "//\r", "//\r\n", "//\u2028", "//\u2029", "/**/", "/***/", "/*/*/", "/* * / */", "<!--\r"} {
		if !triedTwice.MatchString("a ? " + comment + "(" + comment + "b) : c => d") {
			t.Errorf("%q hides a parenthesis", comment)
		}
	}
}
