package toolchain_test

import (
	"errors"
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
		{"return 1 }", "", "code.ts:1:11: Expected", new(*toolchain.BuildError)},
		{"import x from './y'", "", "code.ts:1:8: this code cannot import", new(*toolchain.BuildError)},
		{"const a = 1\nimport {\n x } from 'fs'", "", "code.ts:2:8: this code cannot import", new(*toolchain.BuildError)},
		{"const a = 1\nexport default a", "", "code.ts:2:1: this code cannot export", new(*toolchain.BuildError)},
		{"const a = 1\nreturn import('./y')", "", `code.ts:2:15: "./y" cannot be imported`, new(*toolchain.BuildError)},
		{"const a = 1\nthrow new Error('no')", "", "no", new(*host.GuestError)},
		{"} } } } });\nthrow new Error('early'); ({ a: { b: { c: { d: {", "", "code.ts:2:11: top-level code threw early", new(*toolchain.BuildError)},
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
