package toolchain_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/toolchain"
)

// TestBody runs function bodies. Errors refer to the lines of the body.
func TestBody(t *testing.T) {
	_, e := newEvaluator(t, host.Limits{})
	for _, c := range []struct {
		text, input string
		// want is a part of the error's text, and like its type; with no type it is the output.
		want string
		like any
	}{
		{"return 1", "", "1", nil},
		{"return input", "", "{}", nil},
		{"return input", "[1, 2]", "[1,2]", nil},
		{"return input", "null", "null", nil},
		{"return input", "{", "not JSON", new(*host.InputError)},
		{"return input", `1} , {"input": 2`, "not JSON", new(*host.InputError)},
		{"const input = 1, env = 2, tools = 3; return input + env + tools", "", "6", nil},
		{"return 1 // the end", "", "1", nil},
		{"const n: number = await Promise.resolve(2)\nreturn n", "", "2", nil},
		{"return 1;\n\nlet b = = 2", "", "code.ts:3:9: Unexpected", new(*toolchain.BuildError)},
		{"return 1 +", "", "code.ts:1:11: Unexpected \"}\" at the end of the code\n    return 1 +\n              ^", new(*toolchain.BuildError)},
		{"let a = 1;\r\nreturn (a\n\n \n", "", "code.ts:2:10: Expected \")\" but found \"}\" at the end", new(*toolchain.BuildError)},
		{"return `é", "", "code.ts:1:10: Unterminated string literal at the end", new(*toolchain.BuildError)},
		{"return 1\n/*", "", "code.ts:2:3: Expected \"*/\" to terminate", new(*toolchain.BuildError)},
		{"if (input) {\n return 1", "", "code.ts:2:10: Expected", new(*toolchain.BuildError)},
		{"if (input) {\u2028 return 1", "", "code.ts:2:10: Expected", new(*toolchain.BuildError)},
		{"return 1 }", "", "code.ts:1:11: Unexpected", new(*toolchain.BuildError)},
		{"import x from './y'", "", "code.ts:1:8: this code cannot import", new(*toolchain.BuildError)},
		{"const a = 1\nimport {\n x } from 'fs'", "", "code.ts:2:8: this code cannot import", new(*toolchain.BuildError)},
		{"const a = 1\nexport default a", "", "code.ts:2:1: this code cannot export", new(*toolchain.BuildError)},
		{"const a = 1\nreturn import('./y')", "", `code.ts:2:15: "./y" cannot be imported`, new(*toolchain.BuildError)},
		{"const a = 1\nthrow new Error('no')", "", "no", new(*host.GuestError)},
		{"}} };\nthrow new Error('early'); {{{", "", "code.ts:2:11: top-level code threw early", new(*toolchain.BuildError)},
	} {
		r, err := e.Do(t.Context(), toolchain.Body(toolchain.Program{Name: "code.ts", Text: c.text}), host.Request{Tool: toolchain.BodyTool, Input: []byte(c.input)})
		switch {
		case c.like == nil:
			if err != nil || string(r.Output) != c.want {
				t.Errorf("%s: got %s, %v", c.text, r.Output, err)
			}
		case err == nil || !errors.As(err, c.like) || !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: got %s, %v, want %T with %q", c.text, r.Output, err, c.like, c.want)
		}
		if failed := (*host.GuestError)(nil); errors.As(err, &failed) && !strings.Contains(failed.Failure.Stack, "code.ts:2:11") {
			t.Errorf("%s: the stack is %s", c.text, failed.Failure.Stack)
		}
	}
}

var frameColumn = regexp.MustCompile(`(:\d+):\d+\)`)

// TestErasedBody runs bodies twice, once in a form that esbuild compiles. Both have the same lines in errors and in stacks.
func TestErasedBody(t *testing.T) {
	_, e := newEvaluator(t, host.Limits{})
	for _, c := range []string{
		`throw new Error("a")`,
		"const n: number = 1;\n  if (n > 0) throw new TypeError(`b${n as any}`)",
		"const é = 'ü😀', f = (text: string): never => { throw new RangeError(text) };\nreturn f(é)",
		"const é = 'ü😀'; /* 😀 */ null!.x",
		"const é = 'ü😀'; /* 😀 */ try { null!.x } catch (e) { throw new Error(e.stack) }",
		"interface A { a: string }\nfunction deep(a: A | undefined, depth = 0): string {\n  if (depth === 3) return a!.a.b;\n  return deep(a, depth + 1);\n}\ndeep(undefined);",
		"try { null.x } catch (e) { throw new Error(e.stack) }",
		"try { undefined.x(1,\n 2) } catch (cause: any) { throw new Error('d', { cause }) }",
		"const list: string[] = ['a'];\r\n\r\nlist.map((x) => x.no.such);",
		"console.log(1);\n[1].forEach((x): void => { x() });",
		"let a = 1;\nlet a = 2;",
		"for (const x of 5) {}",
		"(1 as any)();",
		"1 = 2",
		"function f() { await 1 }",
		"/(/.test('x')",
	} {
		var texts [2]string
		for i, text := range []string{c, c + "\nclass Compiled {}"} {
			_, err := e.Do(t.Context(), toolchain.Body(toolchain.Program{Text: text}), host.Request{Tool: toolchain.BodyTool})
			if err == nil {
				t.Errorf("%s: it did not fail", text)
				continue
			}
			texts[i] = err.Error()
			if failed, ok := errors.AsType[*host.GuestError](err); ok {
				texts[i] += "\n" + failed.Failure.Stack
			}
		}
		if !strings.Contains(c, "é") { // elsewhere they may mean another token of the call
			for i := range texts {
				texts[i] = frameColumn.ReplaceAllString(texts[i], "$1)")
			}
		}
		if texts[0] != texts[1] {
			t.Errorf("%s:\n%s\nand compiled:\n%s", c, texts[0], texts[1])
		}
	}
}
