package toolchain

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestManyBodyImports reads texts whose imports take long to tell apart.
func TestManyBodyImports(t *testing.T) {
	var many strings.Builder
	for i := range maxModules + 1 {
		fmt.Fprintf(&many, "import 'm%d'\n", i)
	}
	if _, _, err := BodyImports(many.String()); err == nil || err.Error() != "code.ts:101:1: code that is run once imports at most 100 modules" {
		t.Errorf("got %v", err)
	}
	long := "import 'a'\n" + strings.Repeat(" ", maxTransform)
	if body, modules, err := BodyImports(long); body != long || modules != nil || err != nil {
		t.Errorf("got %q, %v of a text that is too long to run", modules, err)
	}
}

func TestBodyImports(t *testing.T) {
	const from = ` = globalThis[Symbol.for("stile.packages")]["x"];`
	for text, want := range map[string]struct {
		body    string
		modules []string
	}{
		``:                            {``, nil},
		`return 1`:                    {`return 1`, nil},
		`import("x")`:                 {`import("x")`, nil},
		`import.meta.url`:             {`import.meta.url`, nil},
		`import`:                      {`import`, nil},
		`import {`:                    {`import {`, nil},
		`import "x"`:                  {`;`, []string{"x"}},
		`import a from 'x'; return a`: {`const { default: a }` + from + ` return a`, []string{"x"}},
		"import a, { b as c, d } from 'x'\nreturn":     {`const { default: a, b: c, d }` + from + "\nreturn", []string{"x"}},
		"import * as a from 'x';import 'y'\n;f()":      {`const a` + from + " ;\nf()", []string{"x", "y"}},
		"import a, * as b from 'x'":                    {`const b` + from + ` const { default: a }` + from, []string{"x"}},
		"import {\n  a,\n  type B,\n} from 'x';\nuse":  {`const { a }` + from + "\n\n\n\nuse", []string{"x"}},
		"/* a */ import type { A } from 'x'; let b":    {`/* a */ ; let b`, nil},
		"import type A from 'x'":                       {`;`, nil},
		"import type from 'x'":                         {`const { default: type }` + from, []string{"x"}},
		"import type, { a } from 'x'":                  {`const { default: type, a }` + from, []string{"x"}},
		"import { default as a, 'b-c' as d } from 'x'": {`const { default: a, 'b-c': d }` + from, []string{"x"}},
		"import {} from 'x'":                           {``, []string{"x"}},
		"import 'x'\nwith (a) {}":                      {";\nwith (a) {}", []string{"x"}},
		`let a; import "x"`:                            {`let a; import "x"`, nil},
		`import "x"; import "x"; import(y)`:            {`; ; import(y)`, []string{"x"}},
	} {
		body, modules, err := BodyImports(text)
		if err != nil || body != want.body || !slices.Equal(modules, want.modules) {
			t.Errorf("%q: got %q, %q, %v, want %q, %q", text, body, modules, err, want.body, want.modules)
		}
		if strings.Count(body, "\n") != strings.Count(text, "\n") {
			t.Errorf("%q: the lines of %q have other numbers", text, body)
		}
	}
	for _, text := range []string{
		`import a from "x" with { type: "json" };`, `import {a b} from "x"`, `import a b from "x"`, `import { default } from "x"`, `import "\x78"`, `import ""`,
		"import \"a\u200bb\"", `import { a as b.c } from "x"`, `import a, b from "x"`, `import { a }, b from "x"`, `import [a] from "x"`, `import { a } "x"`,
	} {
		if body, _, err := BodyImports("\n" + text); !errors.As(err, new(*BuildError)) {
			t.Errorf("%q: got %q, %v", text, body, err)
		}
	}
}

// Whatever the code is, its import statements become nothing but constants.
func FuzzBodyImports(f *testing.F) {
	for _, text := range []string{"import", `import a from "b" with {`, "import`${import", "/*", `import "x"; import`, "import { a as b } from 'x'"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		body, modules, err := BodyImports(text)
		if err == nil && strings.Count(body, "\n") != strings.Count(text, "\n") {
			t.Errorf("%q became %q", text, body)
		}
		for _, m := range modules {
			if strings.ContainsAny(m, "\"\\\n") {
				t.Errorf("%q has the module %q", text, m)
			}
		}
	})
}
