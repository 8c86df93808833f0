package toolchain

import "testing"

func TestImportsEnd(t *testing.T) {
	for text, want := range map[string]string{
		``:                                      ``,
		`return 1`:                              ``,
		`import("x")`:                           ``,
		`import.meta.url`:                       ``,
		`import`:                                ``,
		`import {`:                              ``,
		`import "x"`:                            `import "x"`,
		`import 'x'; return 1`:                  `import 'x';`,
		"import a, { b as c } from 'x'\nreturn": "import a, { b as c } from 'x'",
		"import * as a from 'x';import 'y'\n;f()":      "import * as a from 'x';import 'y'\n;",
		"/* a */ import type { A } from 'x'; let b":    "/* a */ import type { A } from 'x';",
		`import a from "x" with { type: "json" }; a()`: `import a from "x" with { type: "json" };`,
		"import 'x'\nwith (a) {}":                      "import 'x'",
		`let a; import "x"`:                            ``,
		`import "x"; import(y)`:                        `import "x";`,
	} {
		if got := text[:importsEnd(text)]; got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func FuzzImportsEnd(f *testing.F) {
	for _, text := range []string{"import", `import a from "b" with {`, "import`${import", "/*", `import "x"; import`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if end := importsEnd(text); end < 0 || end > len(text) {
			t.Errorf("%q: %d", text, end)
		}
	})
}
