package toolchain_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/toolchain"
)

// A stack names the author's lines once, wherever it is read: by the code itself, on the console and by the host. This holds for built code
// and for code sent with the call.
func TestStacksNameTheAuthorsLines(t *testing.T) {
	body := func(code string) string {
		return "import { extension } from \"stile\";\nimport { fail } from \"./lib/extension.js\";\nexport default extension({ tools: { t: { description: \"test\", run: async (): Promise<unknown> => {\n" + code + "\n} } } });"
	}
	_, tools := newToolchain(t, host.Options{})
	_, e := newEvaluator(t, host.Limits{})
	for _, c := range []struct {
		name, code            string
		result, logged, stack string
	}{
		{"read", `try { fail("no"); } catch (e) { return e.stack; }`, `Error: no\n    at fail (lib/extension.js:2:`, "", ""},
		{"logged", `try { fail("no"); } catch (e) { console.error(e); } return null;`, "null", "Error: no\n    at fail (lib/extension.js:2:", ""},
		{"logged with others", `try { fail("no"); } catch (e) { console.log("it failed:", { e }); } return null;`, "null", "at fail (lib/extension.js:2:", ""},
		{"thrown", `fail("no");`, "", "", "    at fail (lib/extension.js:2:"},
		{"thrown, and stacks are read", `console.log; fail("no");`, "", "", "    at fail (lib/extension.js:2:"},
		{"thrown after it was read", `try { fail("no"); } catch (e) { e.stack; throw e; }`, "", "", "    at fail (lib/extension.js:2:"},
		{"copied", `try { fail("no"); } catch (e) { const o: any = new Error("outer"); o.stack = e.stack; throw o; }`, "", "", "    at fail (lib/extension.js:2:"},
		{"captured", `const e: any = new Error("no"); (Error as any).captureStackTrace(e); throw e;`, "", "", "    at run (entry.ts:4:"},
		{"a cause", `try { fail("no"); } catch (cause) { throw new Error("outer", { cause }); }`, "", "", "Caused by Error: no\n    at fail (lib/extension.js:2:"},
		{"a DOMException", `throw new DOMException("gone", "AbortError");`, "", "", "    at run (entry.ts:4:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var logged []string
			env := host.Env{"console": console.To(func(_ console.Level, message string) { logged = append(logged, message) })}
			built, err := tools.Build(t.Context(), toolchain.Source{Entry: "entry.ts", FS: fstest.MapFS{
				"entry.ts":         {Data: []byte(body(c.code))},
				"lib/extension.js": {Data: []byte("export function fail(text) {\n  throw new Error(text);\n}\n")},
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = built.Close() }()
			r, err := built.Do(t.Context(), host.Request{Tool: "t", Input: []byte("{}"), Env: env})
			failed, _ := errors.AsType[*host.GuestError](err)
			switch {
			case c.stack != "" && (failed == nil || !strings.Contains(failed.Failure.Stack, c.stack)):
				t.Fatalf("got %s, %+v", r.Output, err)
			case c.stack != "" && (strings.Count(failed.Failure.Stack, "at fail") > 1 || strings.Contains(failed.Failure.Stack, "Error: no\n    at run")):
				t.Errorf("the stack is %s", failed.Failure.Stack)
			case c.stack == "" && (err != nil || !strings.Contains(string(r.Output), c.result)):
				t.Errorf("got %s, %v", r.Output, err)
			case c.logged != "" && !slices.ContainsFunc(logged, func(line string) bool { return strings.Contains(line, c.logged) }):
				t.Errorf("logged %q", logged)
			}
		})
	}

	// Code sent with the call, as a module and as a body.
	for _, c := range []struct {
		p    toolchain.Program
		tool string
	}{
		{toolchain.Body(toolchain.Program{Name: "code.ts", Text: "const x: number = 1;\n\nfunction f() { return new Error(\"no\" + x); }\nreturn f().stack;"}), toolchain.BodyTool},
		{toolchain.Program{Name: "code.ts", Text: "import { extension } from \"stile\"; const x: number = 1;\n\nfunction f() { return new Error(\"no\" + x); }\nexport default extension({ tools: { t: { description: \"t\", run: () => f().stack } } });"}, "t"},
	} {
		r, err := e.Do(t.Context(), c.p, host.Request{Tool: c.tool})
		if err != nil || !strings.HasPrefix(string(r.Output), `"Error: no1\n    at f (code.ts:3:`) || !strings.Contains(string(r.Output), `\n    at run (code.ts:4:`) {
			t.Errorf("%s: got %s, %v", c.tool, r.Output, err)
		}
	}
	// A line that resembles the line with the map has no effect.
	for _, text := range []string{"return new Error(`\n//# stile:source-map={`).stack.length > 0", "return new Error('x').stack + `\n//# stile:source-map={\"sources\":5,\"mappings\":{}}`"} {
		if r, err := e.Do(t.Context(), toolchain.Body(toolchain.Program{Name: "code.ts", Text: text}), host.Request{Tool: toolchain.BodyTool}); err != nil {
			t.Errorf("got %s, %v", r.Output, err)
		}
	}
}
